// The plots of single trainings, which script.js draws with the others: `tools` are its own.
const runPlots = (figures, tools) => {
  'use strict';
  const { axis, at, colours, dashes, short, draw, lineOptions, chosen, xSwitch, redraw } = tools;
  const runs = figures.run_curves || [];
  // What points are over, in the order of the numbers of a point.
  const over = { images: 'images seen', epochs: 'epochs', seconds: 'seconds of training' };

  function curves(key, title, name, factor, note) {
    return holder => {
      const drawn = runs.filter(run => run[key].length);
      if (!drawn.length) return null;
      const across = chosen['run-' + key] || 'images', label = over[across], place = Object.keys(over).indexOf(across);
      const sets = drawn.map(run => {
        const i = runs.indexOf(run), colour = at(colours, i);
        const points = run[key].filter(p => p[place] !== null);
        return { label: run.name, data: points.map(p => ({ x: p[place], y: factor * p[3] })), borderColor: colour,
          backgroundColor: colour, borderDash: at(dashes, Math.floor(i / colours.length)), borderWidth: 1.5,
          pointRadius: points.length === 1 || key === 'accuracy' ? 3 : 0, pointHitRadius: 4 };
      });
      const chart = draw(holder, title, { type: 'line', data: { datasets: sets }, options: lineOptions(
        axis(label, { type: 'linear', min: 0 }), axis(name, { type: 'linear' }),
        (p, set) => `${set.label}: ${short(p.y)} at ${short(p.x)} ${label}`) }, null, note);
      xSwitch(holder, over, 'run-' + key, () => redraw(holder));
      return chart;
    };
  }

  return {
    'run-loss': curves('loss', 'Loss while training', 'loss (nats)', 1,
      'Every step on its own. Between the ends of epochs, seconds are in proportion to images.'),
    'run-accuracy': curves('accuracy', 'Accuracy of validation', 'accuracy (%)', 100, 'After each epoch.'),
  };
};
