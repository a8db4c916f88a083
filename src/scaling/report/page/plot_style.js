// What all plots share: colours, axes, and what lines look like.

const figures = JSON.parse(document.getElementById('figures').textContent);
// Okabe and Ito's colours, which people with any colour vision tell apart; on dark paper the dark ones lightened.
const onLight = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c6bb1', '#808080'];
const onDark = ['#4ba3dd', '#f0b429', '#2ec79b', '#e29cc4', '#a5d8f7', '#f0834a', '#b79bdb', '#a8a8a8'];
let colours = onLight;
const darkness = window.matchMedia('(prefers-color-scheme: dark)');
const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 4], [12, 4], [1, 2], [6, 2, 1, 2]];
const shapes = ['circle', 'triangle', 'rect', 'rectRot', 'star', 'cross'];
const signs = ['●', '▲', '■', '◆', '✶', '✚'];  // the same shapes, in the keys
// Math.min and Math.max of lists that are too long to be their arguments.
const least = list => list.reduce((a, b) => Math.min(a, b), Infinity);
const most = list => list.reduce((a, b) => Math.max(a, b), -Infinity);
const at = (list, i) => list[i % list.length];
const unique = list => [...new Set(list)].sort((a, b) => a - b);
const short = v => v === 0 ? '0' : Math.abs(v) >= 100 ? v.toFixed(0) : String(Number(v.toPrecision(3)));
// As many digits as tell a tick from the next.
const tickText = (v, i, ticks) => {
  if (ticks.length < 2) return short(v);
  const digits = 1 + Math.ceil(-Math.log10(Math.abs(ticks[1].value - ticks[0].value)));
  return String(Number(v.toFixed(Math.max(0, Math.min(20, digits)))));
};
const small = () => window.innerWidth < 640;

function axis(title, more) {
  return Object.assign({
    title: { display: true, text: title, color: css('--ink'), font: { size: small() ? 11 : 13 } },
    grid: { color: css('--line'), borderColor: css('--soft') },  // Chart.js 3
    border: { color: css('--soft') },                            // and 4
    ticks: { color: css('--soft'), font: { size: small() ? 10 : 12 }, callback: tickText, maxRotation: 0 },
  }, more);
}

// A logarithmic axis with ticks at the values that are there, or at 1, 2 and 5 times powers of ten.
function logAxis(title, values, ticks) {
  const low = least(values), high = most(values);
  const edge = low === high ? 1.5 : Math.pow(high / low, 0.04);
  const min = low / edge, max = high * edge;
  // Fewer where the range is wide, so that they never touch.
  const steps = max / min > 30 ? [1, 2, 5]
    : max / min > 5 ? [1, 1.5, 2, 3, 5, 7] : [1, 1.2, 1.5, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const decades = [];
  for (let e = Math.floor(Math.log10(min)); e <= Math.log10(max); ++e) decades.push(Math.pow(10, e));
  const marks = ticks || decades.flatMap(d => (max / min > 2000 ? [1] : steps).map(m => m * d));
  return axis(title, {
    type: 'logarithmic', min, max,
    afterBuildTicks: scale => { scale.ticks = marks.filter(v => v >= min && v <= max).map(value => ({ value })); },
  });
}

const tooltip = text => ({ callbacks: { title: () => '', label: item => text(item.raw, item.dataset) } });

function lineOptions(x, y, text) {
  return { scales: { x, y }, interaction: { mode: 'nearest', intersect: false },
    plugins: { tooltip: tooltip(text) } };
}

// The ranges of a line's points as one area behind it.
function drawBand(chart, set) {
  const { ctx, scales: { x, y } } = chart, points = set.data.filter(p => p.range);
  const corner = end => p => [x.getPixelForValue(p.x), y.getPixelForValue(p.range[end])];
  const corners = [...points.map(corner(0)), ...points.map(corner(1)).reverse()];
  ctx.beginPath();
  corners.forEach(([across, h], i) => (i ? ctx.lineTo(across, h) : ctx.moveTo(across, h)));
  ctx.closePath();
  ctx.fillStyle = set.borderColor + '2e';
  ctx.fill();
}

// The range of a point, such as that of repeats, as a line through it, or as a part of a band.
const whiskers = {
  id: 'whiskers',
  beforeDatasetsDraw(chart) {
    const { ctx, scales: { x, y } } = chart;
    if (!x || !y) return;
    chart.data.datasets.forEach((set, i) => {
      if (!chart.isDatasetVisible(i)) return;
      if (set.band && set.data.length > 1) return drawBand(chart, set);
      ctx.save();
      ctx.strokeStyle = set.borderColor;
      ctx.lineWidth = 1.5;
      for (const p of set.data) {
        if (!p.range) continue;
        const across = x.getPixelForValue(p.x);
        ctx.beginPath();
        for (const end of p.range) {
          const h = y.getPixelForValue(end);
          ctx.moveTo(across - 4, h);
          ctx.lineTo(across + 4, h);
        }
        ctx.moveTo(across, y.getPixelForValue(p.range[0]));
        ctx.lineTo(across, y.getPixelForValue(p.range[1]));
        ctx.stroke();
      }
      ctx.restore();
    });
  },
};
