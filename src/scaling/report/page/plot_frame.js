// A plot in the page: its title, its canvas, keys that hide and show lines, and buttons.

// A piece of the line, or of the bar, that a key stands for.
function sample(key) {
  const make = (name, facts) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [fact, value] of Object.entries(facts)) element.setAttribute(fact, value);
    return element;
  };
  const image = make('svg', { viewBox: '0 0 36 16', 'aria-hidden': 'true' });
  if (key.sign) {
    const sign = make('text', { x: 18, y: 13, 'text-anchor': 'middle', fill: key.colour });
    sign.textContent = key.sign;
    image.append(sign);
    return image;
  }
  image.append(key.block ? make('rect', { x: 10, width: 16, height: 16, fill: key.colour })
    : make('line', { x1: 0, y1: 8, x2: 36, y2: 8, stroke: key.colour, 'stroke-width': 3,
      'stroke-dasharray': (key.dash || []).join(' ') }));
  return image;
}

// As TensorBoard does: a running mean in which the past has the weight, without the bias of its start.
function smoothed(points, weight) {
  if (weight === 0) return points;
  let mean = 0, share = 0;
  return points.map(p => {
    mean = weight * mean + (1 - weight) * p.y;
    share = weight * share + (1 - weight);
    return { ...p, y: mean / share };
  });
}

// A set with `raw` is smoothed; one that is `faint` shows what was measured behind it.
function refresh(chart, keys, weight) {
  chart.data.datasets.forEach((set, i) => {
    if (set.raw) set.data = smoothed(set.raw, weight);
    chart.setDatasetVisibility(i, !keys.some(key => key.off && key.has(set)) && !(set.faint && weight === 0));
  });
  chart.update();
}

function keyButtons(keys, changed) {
  const row = document.createElement('div');
  row.className = 'keys';
  for (const key of keys) {
    const button = makeButton('', () => {
      key.off = !key.off;
      button.setAttribute('aria-pressed', String(!key.off));
      changed();
    });
    button.setAttribute('aria-pressed', String(!key.off));
    button.append(sample(key), key.text);
    row.append(button);
  }
  return row;
}

function smoothingSlider(weight, changed) {
  const label = document.createElement('label'), slider = document.createElement('input');
  const output = document.createElement('output');
  Object.assign(slider, { type: 'range', min: 0, max: 0.99, step: 0.01, value: weight });
  output.textContent = weight.toFixed(2);
  slider.addEventListener('input', () => {
    output.textContent = Number(slider.value).toFixed(2);
    changed(Number(slider.value));
  });
  label.append('Smoothing ', slider, ' ', output);
  return label;
}

function switchButtons({ names, chosen, choose }) {
  const row = document.createElement('span');
  row.className = 'switch';
  row.append('Across: ');
  for (const [x, name] of Object.entries(names)) {
    const button = makeButton(name, () => choose(x));
    button.setAttribute('aria-pressed', String(chosen === x));
    row.append(button);
  }
  return row;
}

// What the lines are made of, whether they are shown or not.
function plotRows(plot) {
  const { x, y } = plot.config.options.scales, across = plot.config.options.indexAxis === 'y';
  const titles = [x.title.text, y.title.text];
  const ranges = plot.config.data.datasets.some(set => set.data.some(p => p.range));
  const rows = [['line', ...titles, ...(ranges ? ['least', 'most'] : [])]];
  for (const set of plot.config.data.datasets) {
    if (set.faint) continue;
    for (const p of set.raw || set.data)
      rows.push([set.name || set.label, p.x, across ? [].concat(p.y).join(' ') : p.y, ...(p.range || [])]);
  }
  return rows;
}

// Title, plot, keys and note on paper.
function plotImage(chart, plot, keys) {
  const from = chart.canvas, scale = from.width / from.clientWidth, edge = 16 * scale;
  const canvas = document.createElement('canvas'), pen = canvas.getContext('2d');
  const font = (size, weight = 400) => `${weight} ${size * scale}px system-ui, sans-serif`;
  const width = from.width + 2 * edge, line = 20 * scale;
  // Twice: the first time to know how high it becomes.
  const lay = () => {
    pen.textBaseline = 'top';
    pen.font = font(16, 600);
    pen.fillStyle = css('--ink');
    pen.fillText(plot.title, edge, edge, from.width);
    pen.drawImage(from, edge, edge + 1.5 * line);
    let left = edge, top = edge + 1.5 * line + from.height + 8 * scale;
    pen.font = font(13);
    for (const key of keys.filter(k => !k.off)) {
      const room = pen.measureText(key.text).width + 44 * scale;
      if (left > edge && left + room > width - edge) left = edge, top += line;
      pen.fillStyle = key.colour;
      if (key.sign) pen.fillText(key.sign, left + 6 * scale, top);
      else if (key.block) pen.fillRect(left + 6 * scale, top, 14 * scale, 14 * scale);
      else {
        pen.strokeStyle = key.colour;
        pen.lineWidth = 3 * scale;
        pen.setLineDash((key.dash || []).map(d => d * scale));
        pen.beginPath();
        pen.moveTo(left, top + 7 * scale);
        pen.lineTo(left + 26 * scale, top + 7 * scale);
        pen.stroke();
      }
      pen.fillStyle = css('--ink');
      pen.fillText(key.text, left + 30 * scale, top, width - edge - left - 30 * scale);
      left += room;
    }
    return top + line + edge;
  };
  canvas.width = width;
  const height = lay();
  canvas.height = height;
  pen.fillStyle = css('--paper');
  pen.fillRect(0, 0, width, height);
  lay();
  return canvas;
}

// Few points need little room: by how many places there are along the axis of lines.
function heightFor(datasets) {
  const places = new Set(datasets.flatMap(set => set.data.map(p => p.x))).size;
  return `${Math.max(14, Math.min(24, 11 + 1.5 * places))}rem`;
}

// By titles: what the reader hid and smoothed stays so where a plot is drawn again.
const earlier = new Map();

// Draws a plot at the end of a place: { title, config, keys, note, height, across, smoothing }. `across` lets the
// reader choose what the points are over; `smoothing` is where its slider begins.
function drawPlot(place, plot) {
  const { datasets } = plot.config.data;
  const keys = plot.keys || datasets.filter(set => !set.faint).map(set => (
    { text: set.label, colour: set.borderColor, dash: set.borderDash, has: other => other === set }));
  const box = document.createElement('div'), head = document.createElement('h3');
  const tools = document.createElement('div'), frame = document.createElement('div');
  const canvas = document.createElement('canvas');
  const before = earlier.get(plot.title) || { keys: [], weight: plot.smoothing || 0 };
  const state = { keys, weight: before.weight };
  for (const key of keys) key.off = before.keys.some(other => other.off && other.text === key.text);
  earlier.set(plot.title, state);
  head.textContent = plot.title;
  const section = place.closest('section');  // none around the plot that the page begins with
  head.hidden = section !== null && section.querySelector('h2').textContent === plot.title;
  tools.className = 'tools';
  frame.className = 'frame';
  frame.style.height = plot.height || heightFor(datasets);
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', plot.title + '; the tables of this page hold the figures');
  frame.append(canvas);
  box.append(head, tools, frame);
  place.append(box);
  const fixed = { responsive: true, maintainAspectRatio: false, animation: false };
  const options = Object.assign(fixed, plot.config.options);
  options.plugins = Object.assign({ legend: { display: false } }, options.plugins);
  const chart = new Chart(canvas, { ...plot.config, options, plugins: [whiskers] });
  if (plot.across) tools.append(switchButtons(plot.across));
  const show = () => refresh(chart, keys, state.weight);
  if (plot.smoothing !== undefined) tools.append(smoothingSlider(state.weight, value => { state.weight = value; show(); }));
  const name = fileName(plot.title), buttons = document.createElement('span');
  buttons.className = 'files';
  buttons.append(makeButton('PNG', () => savePng(name, plotImage(chart, plot, keys))),
    makeButton('CSV', () => saveCsv(name, plotRows(plot))));
  tools.append(buttons);
  box.append(keyButtons(keys, show));
  show();
  if (plot.note) {
    const note = document.createElement('p');
    note.textContent = plot.note;
    box.append(note);
  }
  return chart;
}
