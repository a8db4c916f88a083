// The plots of single trainings, which script.js draws with the others: `tools` are its own.
const runPlots = (figures, tools) => {
  'use strict';
  const { axis, css, at, colours, dashes, short, draw, lineOptions } = tools;
  const runs = figures.run_curves || [];
  // What points are over: [title, its place in a point].
  const over = [['images seen', 0], ['epochs', 1], ['seconds of training', 2]];
  const chosen = {};  // by plot: colours of the system may change, what a person chose stays

  function curves(key, title, name, factor, note) {
    return holder => {
      const with_points = runs.filter(run => run[key].length);
      if (!with_points.length) return null;
      const [label, place] = over[chosen[key] || 0];
      const sets = with_points.map(run => {
        const i = runs.indexOf(run), colour = at(colours, i);
        const points = run[key].filter(p => p[place] !== null);
        return { label: run.name, data: points.map(p => ({ x: p[place], y: factor * p[3] })), borderColor: colour,
          backgroundColor: colour, borderDash: at(dashes, Math.floor(i / colours.length)), borderWidth: 1.5,
          pointRadius: points.length === 1 || key === 'accuracy' ? 3 : 0, pointHitRadius: 4 };
      });
      const chart = draw(holder, title, { type: 'line', data: { datasets: sets }, options: lineOptions(
        axis(label, { type: 'linear', min: 0 }), axis(name, { type: 'linear' }),
        (p, set) => `${set.label}: ${short(p.y)} at ${short(p.x)} ${label}`) }, null, note);
      holder.prepend(choice(holder, key));
      return chart;
    };
  }

  // Buttons for what is across.
  function choice(holder, key) {
    const line = document.createElement('p');
    line.className = 'keys';
    line.setAttribute('role', 'group');
    line.setAttribute('aria-label', 'What is across');
    over.forEach(([label], i) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'choice';
      button.setAttribute('aria-pressed', String(i === (chosen[key] || 0)));
      button.textContent = label;
      button.addEventListener('click', () => {
        chosen[key] = i;
        tools.redraw();
        holder.querySelectorAll('.choice')[i].focus();
      });
      line.append(button);
    });
    return line;
  }

  return {
    'run-loss': curves('loss', 'Loss while training', 'loss (nats)', 1,
      'Every step on its own. Between the ends of epochs, seconds are in proportion to images.'),
    'run-accuracy': curves('accuracy', 'Accuracy of validation', 'accuracy (%)', 100, 'After each epoch.'),
  };
};
