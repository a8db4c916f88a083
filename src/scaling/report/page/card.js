// The card at the top as an image, drawn from its texts.
(function () {
  const card = document.getElementById('card');
  if (!card) return;
  const scale = 2, width = 720, edge = 32, inner = width - 2 * edge, sans = 'system-ui, sans-serif';
  const texts = selector => [...card.querySelectorAll(selector)].map(element => element.textContent);

  // Draws from `top` on and returns where it ended.
  function paragraph(pen, text, font, colour, top, lineHeight, left = edge, room = inner) {
    pen.font = font;
    pen.fillStyle = colour;
    for (const line of textLines(pen, text, room)) {
      pen.fillText(line, left, top);
      top += lineHeight;
    }
    return top;
  }

  function drawCard(pen) {
    const ink = css('--ink'), soft = css('--soft');
    pen.textBaseline = 'top';
    let top = paragraph(pen, texts('.subject')[0], `600 18px ${sans}`, ink, edge, 25) + 6;
    top = paragraph(pen, texts('.figure')[0], `700 60px ${sans}`, css('--link'), top, 68);
    top = paragraph(pen, texts('.what')[0], `18px ${sans}`, ink, top, 25) + 14;
    const names = texts('dt'), values = texts('dd');
    names.forEach((name, i) => {
      paragraph(pen, name, `15px ${sans}`, soft, top, 22, edge, 130);
      top = Math.max(top + 22, paragraph(pen, values[i], `15px ${sans}`, ink, top, 22, edge + 140, inner - 140));
    });
    for (const command of texts('code')) top = paragraph(pen, command, '13px monospace', soft, top + 14, 19);
    return top + edge;
  }

  function toPng() {
    const canvas = document.createElement('canvas'), pen = canvas.getContext('2d');
    const height = drawCard(pen);  // to measure
    canvas.width = scale * width;
    canvas.height = scale * height;
    pen.scale(scale, scale);
    pen.fillStyle = css('--paper');
    pen.fillRect(0, 0, width, height);
    pen.strokeStyle = css('--line');
    pen.strokeRect(0.5, 0.5, width - 1, height - 1);
    drawCard(pen);
    savePng(fileName(document.title), canvas);
  }

  const button = makeButton('Save as PNG', toPng);
  button.className = 'save';
  card.after(button);
}());
