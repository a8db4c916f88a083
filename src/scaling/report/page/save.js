// Files for the reader: what plots and the card become.

function save(name, blob) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const fileName = text =>
  text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '').slice(0, 80) || 'plot';

// RFC 4180; what a spreadsheet would take for a formula gets an apostrophe in front: the rule of core/csv.h.
const isFormula = text =>
  /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) && !/^[+-](\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);

function csvText(rows) {
  const field = value => {
    const given = String(value === undefined || value === null ? '' : value);
    const text = isFormula(given) ? "'" + given : given;
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return rows.map(row => row.map(field).join(',') + '\r\n').join('');
}

const saveCsv = (name, rows) => save(name + '.csv', new Blob([csvText(rows)], { type: 'text/csv' }));
const savePng = (name, canvas) => canvas.toBlob(blob => save(name + '.png', blob), 'image/png');

function makeButton(text, does) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = text;
  button.addEventListener('click', does);
  return button;
}

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The text in lines that are no wider than `width`; words that are wider than it are cut.
function textLines(pen, text, width) {
  const lines = [];
  let line = '';
  for (let word of text.trim().split(/\s+/)) {
    if (pen.measureText(line ? line + ' ' + word : word).width <= width) {
      line = line ? line + ' ' + word : word;
      continue;
    }
    if (line) lines.push(line);
    while (pen.measureText(word).width > width && word.length > 1) {
      let most = word.length - 1;
      while (most > 1 && pen.measureText(word.slice(0, most)).width > width) --most;
      lines.push(word.slice(0, most));
      word = word.slice(most);
    }
    line = word;
  }
  return line ? [...lines, line] : lines;
}
