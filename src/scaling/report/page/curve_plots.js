// Loss and accuracy while training: of the cells of sweeps, and of single trainings.

// What the reader chose above plots, by their names.
const chosen = {};
// A few points need no smoothing; more begin with TensorBoard's.
const smoothingFor = lists => (most(lists.map(list => list.length)) > 30 ? 0.6 : 0);

// The lists of what trained on the same data: losses and accuracies on other images share no axes.
function byData(list, dataOf) {
  const groups = new Map();
  for (const one of list) {
    const data = dataOf(one) || '';
    groups.set(data, [...(groups.get(data) || []), one]);
  }
  return [...groups].map(([data, members]) => (
    { members, suffix: groups.size > 1 ? `, data ${data || 'not known'}` : '' }));
}

const dataOfCell = cell => (figures.series.find(s => s.name === cell.series) || { about: {} }).about.data;

// A set of a curve and the points that it smooths, faint behind it.
function curveSets(set) {
  return [{ ...set, raw: set.data },
    { ...set, faint: true, borderColor: set.borderColor + '40', pointRadius: 0, pointHitRadius: 0, order: 1 }];
}

function across(key, names, redraw) {
  const choice = chosen[key] || Object.keys(names)[0];
  return { names, chosen: choice, choose: x => { chosen[key] = x; redraw(); } };
}

// As high as the intervals of its points, or as a few hundred images would make them: an axis that ends at the
// accuracies themselves makes a cliff of two images.
function accuracyAxis(sets) {
  const points = sets.flatMap(set => set.data), ends = points.map(p => p.range || [p.y - 0.05, p.y + 0.05]);
  return axis('accuracy', { type: 'linear', suggestedMin: Math.max(0, least(ends.map(e => e[0]))),
    suggestedMax: Math.min(1, most(ends.map(e => e[1]))) });
}

// Curves of every cell, over the images seen or over the seconds of training.
function cellCurves(key, title, name, { units, batchOf, place }) {
  const names = { images: 'images seen', seconds: 'seconds of training steps' };
  const unitsOf = n => (n === 1 ? units.replace(/s\b/g, '') : units);

  function curvesOf(list, suffix, x, switches) {
    const rows = unique(list.map(c => c.batch)), cpus = unique(list.map(c => c.cpus));
    const kind = c => c.series + (c.batch_per_rank === undefined ? '' : ', weak scaling');
    const kinds = [...new Set(list.map(kind))];
    // Shapes tell series apart, on a few points of each curve, not all at the same place.
    const marked = (c, k) => c.images.map((_, i) => c.images.length === 1
      || (kinds.length > 1 && i % Math.ceil(c.images.length / 5) === (3 * k) % Math.ceil(c.images.length / 5)) ? 4 : 0);
    const datasets = list.flatMap(c => {
      const k = kinds.indexOf(kind(c)), colour = at(colours, rows.indexOf(c.batch));
      return curveSets({
        label: '', name: `${c.series}, ${c.cpus} ${unitsOf(c.cpus)}, batch ${batchOf(c)}`,
        batch: c.batch, cpus: c.cpus, kind: kind(c), cell: c,
        borderWidth: 1.5, pointHitRadius: 4, pointRadius: marked(c, k), pointStyle: at(shapes, k), borderColor: colour,
        backgroundColor: colour, borderDash: at(dashes, cpus.indexOf(c.cpus)),
        data: c[x].map((value, i) => ({ x: value, y: c[key][i], cell: c })),
      });
    });
    const keys = [
      ...rows.map((batch, i) => ({ text: `batch ${batch}`, colour: at(colours, i), has: s => s.batch === batch })),
      ...cpus.map((n, i) => ({ text: `${n} ${unitsOf(n)}`, colour: css('--soft'), dash: at(dashes, i),
        has: s => s.cpus === n })),
      ...(kinds.length < 2 ? [] : kinds.map((text, i) => ({ text, colour: css('--soft'), sign: at(signs, i),
        has: s => s.kind === text }))),
    ];
    return { title: title + suffix, keys, across: switches, smoothing: smoothingFor(list.map(c => c[key])),
      config: { type: 'line', data: { datasets }, options: lineOptions(
        axis(names[x], { type: 'linear', min: 0 }), axis(name, { type: 'linear' }),
        p => `${place(p)}: ${short(p.y)} after ${x === 'images' ? p.x : short(p.x)} ${x}`) },
      note: 'Every step on its own, of one repeat of each cell; faint where it is smoothed. Colours are batches, '
        + 'dashes are numbers of ' + units + (kinds.length > 1 ? ', shapes are machines and backends.' : '.') };
  }

  return (holder, redraw) => {
    const all = figures.curves || [], timed = all.some(c => c.seconds.length === c[key].length);
    const x = (timed && chosen[key]) || 'images';
    return byData(all.filter(c => c[x].length === c[key].length), dataOfCell).map(({ members, suffix }) => drawPlot(holder,
      curvesOf(members, suffix, x, timed ? across(key, names, redraw) : null)));
  };
}

const runPlots = (() => {
  const runs = figures.run_curves || [];
  // What points are over, in the order of the numbers of a point.
  const names = { images: 'images seen', epochs: 'epochs', seconds: 'seconds of training' };

  const pointsOf = (list, x) => {
    const column = Object.keys(names).indexOf(x);
    return list.filter(p => p[column] !== null).map(p => (
      { x: p[column], y: p[3], ...(p.length > 5 ? { range: [p[4], p[5]] } : {}) }));
  };
  function setOf(run, list, x, more) {
    const i = runs.indexOf(run), colour = at(colours, i), data = pointsOf(list, x);
    return { label: run.name, name: run.name, run, data, borderColor: colour, backgroundColor: colour,
      borderDash: at(dashes, Math.floor(i / colours.length)), borderWidth: 1.5, pointRadius: data.length === 1 ? 3 : 0,
      pointHitRadius: 4, ...more };
  }
  const mostBands = 6;  // more of them hide each other
  const keysOf = members => members.map(run => {
    const { borderColor, borderDash } = setOf(run, [], 'images');
    return { text: run.name, colour: borderColor, dash: borderDash, has: set => set.run === run };
  });

  const accuracyText = p => p.y.toFixed(4) + (p.range ? ` (${p.range.map(v => v.toFixed(4)).join(' to ')})` : '');

  function plotOf(key, title, yAxis, text, note, setsOf, keysBeside) {
    return (holder, redraw) => {
      const x = chosen['run-' + key] || 'images';
      const drawn = runs.filter(run => run[key].length);
      return byData(drawn, run => run.data).map(({ members, suffix }) => {
        const datasets = members.flatMap(run => setsOf(run, x, members.length));
        return drawPlot(holder, { title: title + suffix, note: note(datasets), across: across('run-' + key, names, redraw),
          keys: [...keysOf(members), ...keysBeside(members)],
          smoothing: key === 'loss' ? smoothingFor(members.map(run => run.loss)) : undefined,
          config: { type: 'line', data: { datasets }, options: lineOptions(
            axis(names[x], { type: 'linear', min: 0 }), yAxis(datasets),
            (p, set) => `${set.name}: ${text(p)} at ${short(p.x)} ${names[x]}`) } });
      });
    };
  }

  const validation = { kind: 'validation', borderDash: [2, 3], pointRadius: 3, pointStyle: 'rectRot' };
  const losses = (run, x) => [...curveSets(setOf(run, run.loss, x, { kind: 'training' })),
    ...(run.val_loss.length ? [setOf(run, run.val_loss, x, { ...validation, name: run.name + ', validation' })] : [])];
  const kinds = members => (members.some(run => run.val_loss.length) ? [
    { text: 'training', colour: css('--soft'), has: set => set.kind === 'training' },
    { text: 'validation', colour: css('--soft'), dash: [3, 5], has: set => set.kind === 'validation' }] : []);

  return {
    'run-loss': plotOf('loss', 'Loss', () => axis('loss (nats)', { type: 'linear' }), p => short(p.y), () =>
      'Training: every step on its own, faint where it is smoothed. '
      + 'Validation: after each epoch. Between the ends of epochs, seconds are in proportion to images.',
    losses, kinds),
    'run-accuracy': plotOf('accuracy', 'Accuracy of validation', accuracyAxis, accuracyText, sets => 'After each epoch.'
      + (sets.some(set => set.band) ? ' Areas: 95 % over the validation images.' : ''),
    (run, x, runs) => [setOf(run, run.accuracy, x, { pointRadius: 3,
      band: runs <= mostBands && run.accuracy.some(p => p.length > 5) })], () => []),
  };
})();
