// Draws the plots of a report with Chart.js from the JSON in the page.
(function () {
  'use strict';
  const figures = JSON.parse(document.getElementById('figures').textContent);
  // Okabe and Ito's colours, which people with any colour vision tell apart; on dark paper the dark ones lightened.
  const onLight = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c6bb1', '#808080'];
  const onDark = ['#4ba3dd', '#f0b429', '#2ec79b', '#e29cc4', '#a5d8f7', '#f0834a', '#b79bdb', '#a8a8a8'];
  const darkness = window.matchMedia('(prefers-color-scheme: dark)');
  let colours = onLight;
  const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 4], [12, 4], [1, 2], [6, 2, 1, 2]];
  const shapes = ['circle', 'triangle', 'rect', 'rectRot', 'star', 'cross'];
  const signs = ['●', '▲', '■', '◆', '✶', '✚'];  // of the same shapes, in the keys
  const parts = [['input_wait', 'input'], ['forward', 'forward'], ['backward', 'backward'],
    ['allreduce_exposed', 'allreduce'], ['straggler_wait', 'stragglers'], ['optimizer', 'optimizer'],
    ['other', 'other']];
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Of lists that are too long to be arguments of Math.min.
  const least = list => list.reduce((a, b) => Math.min(a, b), Infinity);
  const most = list => list.reduce((a, b) => Math.max(a, b), -Infinity);
  const at = (list, i) => list[i % list.length];
  const unique = list => [...new Set(list)].sort((a, b) => a - b);
  const short = v => v === 0 ? '0' : Math.abs(v) >= 100 ? v.toFixed(0) : String(Number(v.toPrecision(3)));
  const devices = name => figures.series.some(s => s.name === name && s.devices);
  const onlyDevices = figures.series.every(s => s.devices);
  const anyDevices = figures.series.some(s => s.devices);
  const units = onlyDevices ? 'GPUs' : anyDevices ? 'CPUs or GPUs' : 'CPUs';
  const count = cell => `${cell.cpus} ${devices(cell.series) ? 'GPU' : 'CPU'}${cell.cpus === 1 ? '' : 's'}`;
  const named = cell => (figures.series.length > 1 ? cell.series + ', ' : '');
  // In weak scaling the threads of a rank belong to it: other threads are another global batch.
  const batchOf = cell => cell.batch_per_rank === undefined ? `${cell.batch}`
    : `${cell.batch_per_rank} per rank` + (cell.threads > 1 ? `, ${cell.threads} threads` : '');
  const small = () => window.innerWidth < 640;
  const strong = figures.cells.filter(c => c.batch_per_rank === undefined && c.seconds_per_epoch !== null);
  const weak = figures.cells.filter(c => c.batch_per_rank !== undefined && c.seconds_per_epoch !== null);
  const published = figures.reference ? figures.reference.cells.filter(c => c.seconds_per_epoch !== null) : [];
  const batches = unique([...strong, ...published].map(c => c.batch));
  const strongRows = batches.map(String);
  const weakRows = [...new Set([...weak]
    .sort((a, b) => a.batch_per_rank - b.batch_per_rank || a.threads - b.threads).map(batchOf))];

  // --- what all plots share

  function axis(title, more) {
    return Object.assign({
      title: { display: true, text: title, color: css('--ink'), font: { size: small() ? 11 : 13 } },
      grid: { color: css('--line'), borderColor: css('--soft') },
      ticks: { color: css('--soft'), font: { size: small() ? 10 : 12 }, callback: short, maxRotation: 0 },
    }, more);
  }

  // A logarithmic axis with ticks at the values that are there, or at 1, 2 and 5 times powers of ten.
  function logAxis(title, values, ticks) {
    const low = least(values), high = most(values);
    const edge = low === high ? 1.5 : Math.pow(high / low, 0.04);
    const min = low / edge, max = high * edge;
    // Fewer where the range is wide, so that they never touch.
    const steps = max / min > 30 ? [1, 2, 5] : max / min > 5 ? [1, 1.5, 2, 3, 5, 7] : [1, 1.2, 1.5, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
    const decades = [];
    for (let e = Math.floor(Math.log10(min)); e <= Math.log10(max); ++e) decades.push(Math.pow(10, e));
    const marks = ticks || decades.flatMap(d => (max / min > 2000 ? [1] : steps).map(m => m * d));
    return axis(title, {
      type: 'logarithmic', min, max,
      afterBuildTicks: scale => { scale.ticks = marks.filter(v => v >= min && v <= max).map(value => ({ value })); },
    });
  }

  // The range of the repeats, as a line through a point.
  const whiskers = {
    id: 'whiskers',
    beforeDatasetsDraw(chart) {
      const { ctx, scales: { x, y } } = chart;
      if (!x || !y) return;
      chart.data.datasets.forEach((set, i) => {
        if (!chart.isDatasetVisible(i)) return;
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

  // Buttons below a plot that hide and show what they name.
  function keys(holder, chart, list) {
    const row = document.createElement('div');
    row.className = 'keys';
    for (const key of list) {
      const button = document.createElement('button');
      button.type = 'button';
      button.setAttribute('aria-pressed', 'true');
      button.append(sample(key), key.text);
      button.addEventListener('click', () => {
        key.off = !key.off;
        button.setAttribute('aria-pressed', String(!key.off));
        chart.data.datasets.forEach((set, i) => {
          chart.setDatasetVisibility(i, !list.some(k => k.off && k.has(set)));
        });
        chart.update();
      });
      row.append(button);
    }
    holder.append(row);
  }

  function draw(holder, title, config, list, note, height) {
    holder.replaceChildren();
    const head = document.createElement('h3'), frame = document.createElement('div');
    const canvas = document.createElement('canvas');
    head.textContent = title;
    frame.className = 'frame';
    if (height) frame.style.height = height;
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', title + '; the tables of this page hold the figures');
    frame.append(canvas);
    const section = holder.closest('section').querySelector('h2');
    if (section.textContent !== title) holder.append(head);
    holder.append(frame);
    config.options = Object.assign({ responsive: true, maintainAspectRatio: false, animation: false }, config.options);
    config.options.plugins = Object.assign({ legend: { display: false } }, config.options.plugins);
    config.plugins = [whiskers];
    const chart = new Chart(canvas, config);
    keys(holder, chart, list || config.data.datasets.map(set => (
      { text: set.label, colour: set.borderColor, dash: set.borderDash, has: other => other === set })));
    if (note) {
      const p = document.createElement('p');
      p.textContent = note;
      holder.append(p);
    }
    return chart;
  }

  const tooltip = text => ({ callbacks: { title: () => '', label: item => text(item.raw, item.dataset) } });

  // --- lines over the number of CPUs

  // A line for every row of batches of every series; `y` makes a point of a cell, or nothing.
  function lines(cells, rows, y) {
    const sets = [];
    figures.series.forEach((series, s) => rows.forEach((batch, i) => {
      const data = cells.filter(c => c.series === series.name && batchOf(c) === batch && y(c) !== null)
        .map(c => ({ x: c.cpus, y: y(c), cell: c })).sort((a, b) => a.x - b.x);
      if (!data.length) return;
      const colour = at(colours, i), simulated = data.filter(p => p.cell.status === 'simulated').length;
      sets.push({
        label: named(data[0].cell) + `batch ${batch}` + (simulated === data.length && !series.name.includes('simulated') ? ', simulated' : ''),
        data, borderColor: colour, backgroundColor: colour,
        // Hollow: simulated.
        pointBackgroundColor: data.map(p => p.cell.status === 'simulated' ? css('--paper') : colour),
        borderDash: at(dashes, s), pointStyle: at(shapes, s), pointRadius: 4, borderWidth: simulated ? 1.5 : 2, clip: false,
      });
    }));
    return sets;
  }

  function lineOptions(x, y, text) {
    return { scales: { x, y }, interaction: { mode: 'nearest', intersect: false },
      plugins: { tooltip: tooltip(text) } };
  }

  const place = (p, set) => p.cell ? `${named(p.cell)}${count(p.cell)}, batch ${batchOf(p.cell)}` : `${set.label}, ${p.x} CPUs`;
  const mark = status => status === 'measured' || !status ? '' : ` (${status})`;
  const markOfSpeedUp = cell => mark(cell.speed_up_status) + (cell.suspect ? ' (suspect)' : '');
  const over = sets => unique(sets.flatMap(s => s.data.map(p => p.x)));

  // What the time of each series' fewest CPUs would be on more of them, at the smallest batch that has it.
  function idealSeconds(cpus) {
    return figures.series.flatMap(series => {
      const own = strong.filter(c => c.series === series.name).sort((a, b) => a.cpus - b.cpus || a.batch - b.batch);
      if (!own.length || own.every(c => c.cpus === own[0].cpus)) return [];
      const [first] = own;
      return [{
        label: named(first) + 'ideal', ideal: true, borderColor: css('--soft'), borderDash: [2, 3], borderWidth: 1.5,
        pointRadius: 0, pointHitRadius: 0,
        data: cpus.filter(x => x >= first.cpus).map(x => ({ x, y: first.seconds_per_epoch * first.cpus / x })),
      }];
    });
  }

  function seconds(holder) {
    const sets = lines(strong, strongRows, c => c.seconds_per_epoch);
    for (const set of sets) {
      for (const p of set.data) {
        if (p.cell.spread && p.cell.spread[1] > p.cell.spread[0]) p.range = p.cell.spread;
      }
    }
    for (const batch of unique(published.map(c => c.batch))) {
      const data = published.filter(c => c.batch === batch).map(c => ({ x: c.cpus, y: c.seconds_per_epoch }))
        .sort((a, b) => a.x - b.x);
      sets.push({ label: `published, batch ${batch}`, data, borderColor: at(colours, batches.indexOf(batch)),
        borderDash: at(dashes, figures.series.length), borderWidth: 1, pointRadius: 3, pointStyle: 'crossRot', clip: false });
    }
    if (!sets.length) return null;
    const all = sets.flatMap(s => s.data.flatMap(p => p.range || [p.y]));
    const cpus = over(sets);
    sets.push(...idealSeconds(cpus));
    const simulated = sets.some(s => s.data.some(p => p.cell && p.cell.status === 'simulated'));
    const note = 'Logarithmic axes. ' + (sets.some(s => s.data.some(p => p.range)) ? 'Bars: least and most of the repeats. ' : '')
      + (simulated ? 'Hollow points are simulated. ' : '')
      + (sets.some(s => s.ideal) ? 'Ideal: the seconds of the fewest CPUs, divided among more.' : '');
    return draw(holder, 'Seconds per epoch', { type: 'line', data: { datasets: sets },
      options: lineOptions(logAxis(units, cpus, cpus), logAxis('time of an epoch (s)', all),
        (p, set) => `${place(p, set)}: ${short(p.y)} s` + (p.cell ? mark(p.cell.status) : '')) }, null, note);
  }

  function speedUp(holder) {
    const sets = lines(strong, strongRows, c => c.speed_up);
    if (!sets.length) return null;
    const cpus = over(sets), all = sets.flatMap(s => s.data.map(p => p.y));
    // A row is against its fewest CPUs, which are more than one where others could not run.
    const bases = unique(sets.map(s => s.data[0].x));
    const ideals = bases.map((base, i) => ({
      label: bases.length > 1 ? `ideal, against ${base}` : 'ideal', base,
      data: cpus.filter(x => x >= base).map(x => ({ x, y: x / base })),
      borderColor: css('--soft'), borderDash: at([[4, 4], [1, 3], [8, 3], [12, 3, 2, 3]], i), borderWidth: 1.5, pointRadius: 0,
    }));
    const values = [...all, ...ideals.flatMap(s => s.data.map(p => p.y))];
    sets.unshift(...ideals);
    return draw(holder, 'Speed-up', { type: 'line', data: { datasets: sets },
      options: lineOptions(logAxis(units, cpus, cpus), logAxis('speed-up (times)', values),
        (p, set) => p.cell ? `${place(p, set)}: ${short(p.y)} times` + markOfSpeedUp(p.cell)
          : `${set.label}, on ${p.x}: ${short(p.y)} times`) }, null, 'Logarithmic axes.'
      + (bases.length > 1 ? ' Each batch has the ideal line of the fewest CPUs that it has a time of.' : ''));
  }

  function efficiencyOf(cells, rows, title, name) {
    return holder => {
      const sets = lines(cells, rows, c => c.efficiency === null ? null : 100 * c.efficiency);
      if (!sets.length) return null;
      const highest = Math.max(100, most(sets.flatMap(s => s.data.map(p => p.y))));
      return draw(holder, title, { type: 'line', data: { datasets: sets },
        options: lineOptions(logAxis(units, over(sets), over(sets)),
          axis(name, { min: 0, max: Math.ceil(highest / 20) * 20 }),
          (p, set) => `${place(p, set)}: ${p.y.toFixed(1)} %` + markOfSpeedUp(p.cell)) });
    };
  }

  // --- where the time goes

  function budget(holder) {
    const cells = [...strong, ...weak].filter(c => c.budget);
    if (!cells.length) return null;
    // Two lines where the window is small. Each label is the bar's own, even if two read alike.
    const labels = cells.map(c => {
      const text = `${c.cpus} · ${batchOf(c)}`;
      if (figures.series.length === 1) return [text];
      return small() ? [c.series.length > 18 ? c.series.slice(0, 17) + '…' : c.series, text] : [`${c.series}, ${text}`];
    });
    const sets = parts.map(([key, label], i) => ({
      label, backgroundColor: at(colours, i), borderColor: at(colours, i), barPercentage: 0.85, categoryPercentage: 0.9,
      data: cells.map((c, y) => ({ x: Math.max(0, 100 * c.budget[key] / c.seconds_per_epoch), y: labels[y], cell: c,
        seconds: c.budget[key] })),
    }));
    const lineHeight = figures.series.length > 1 && small() ? 2.4 : 1.5;
    return draw(holder, 'Where the time of an epoch goes', { type: 'bar', data: { labels, datasets: sets },
      options: { indexAxis: 'y', plugins: { tooltip: tooltip((p, set) =>
        `${place(p)}: ${set.label} ${short(p.seconds)} s, ${p.x.toFixed(1)} %` + mark(p.cell.status)) },
        scales: { x: axis('part of an epoch (%)', { stacked: true, min: 0, max: 100 }),
          y: axis(`${units} · batch`, { stacked: true, grid: { display: false },
            ticks: { color: css('--soft'), font: { size: small() ? 10 : 12 }, autoSkip: false } }) } } },
    sets.map(set => ({ text: set.label, colour: set.borderColor, block: true, has: other => other === set })), '',
    `${Math.max(9, 5 + lineHeight * cells.length)}rem`);
  }

  // --- curves of every cell over each other

  // Over the images seen or over the seconds of training, as the reader chose above the plot.
  const axisNames = { images: 'images seen', seconds: 'seconds of training steps' };
  const chosen = {};

  function xSwitch(holder, names, key, redraw) {
    const row = document.createElement('div');
    row.className = 'switch';
    row.append('Across: ');
    for (const [x, name] of Object.entries(names)) {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = name;
      button.setAttribute('aria-pressed', String((chosen[key] || Object.keys(names)[0]) === x));
      button.addEventListener('click', () => {
        chosen[key] = x;
        redraw();
        holder.querySelector('.switch [aria-pressed=true]').focus();
      });
      row.append(button);
    }
    holder.querySelector('.frame').before(row);
  }

  function curvesOf(key, title, name, factor) {
    const drawCurves = holder => {
      const across = chosen[key] || 'images', all = figures.curves || [];
      if (!all.length) return null;
      const list = all.filter(c => c[across].length === c[key].length);
      const rows = unique(list.map(c => c.batch)), cpus = unique(list.map(c => c.cpus));
      const kind = c => c.series + (c.batch_per_rank === undefined ? '' : ', weak scaling');
      const kinds = [...new Set(list.map(kind))];
      // Shapes tell series apart, on a few points of each curve, not all at the same place.
      const marked = (c, k) => c.images.map((x, i) => c.images.length === 1
        || (kinds.length > 1 && i % Math.ceil(c.images.length / 5) === (3 * k) % Math.ceil(c.images.length / 5)) ? 4 : 0);
      const sets = list.map(c => {
        const k = kinds.indexOf(kind(c)), colour = at(colours, rows.indexOf(c.batch));
        return {
          label: '', batch: c.batch, cpus: c.cpus, kind: kind(c), cell: c, borderWidth: 1.5, pointHitRadius: 4,
          pointRadius: marked(c, k), pointStyle: at(shapes, k), borderColor: colour, backgroundColor: colour,
          borderDash: at(dashes, cpus.indexOf(c.cpus)),
          data: c[across].map((x, i) => ({ x, y: factor * c[key][i], cell: c })),
        };
      });
      const by = [
        ...rows.map((batch, i) => ({ text: `batch ${batch}`, colour: at(colours, i), has: s => s.batch === batch })),
        ...cpus.map((n, i) => ({ text: `${n} ${n === 1 ? units.replace(/s\b/g, '') : units}`, colour: css('--soft'),
          dash: at(dashes, i), has: s => s.cpus === n })),
        ...(kinds.length < 2 ? [] : kinds.map((name, i) => ({ text: name, colour: css('--soft'), sign: at(signs, i),
          has: s => s.kind === name }))),
      ];
      return draw(holder, title, { type: 'line', data: { datasets: sets }, options: lineOptions(
        axis(axisNames[across], { type: 'linear', min: 0 }), axis(name, { type: 'linear' }),
        p => `${place(p)}: ${short(p.y)} after ${across === 'images' ? p.x : short(p.x)} ${across}`) }, by,
      'Every step on its own, of one repeat of each cell. Colours are batches, dashes are numbers of ' + units
        + (kinds.length > 1 ? ', shapes are machines and backends.' : '.'));
    };
    return holder => {
      const chart = drawCurves(holder);
      const timed = (figures.curves || []).some(c => c.seconds.length === c[key].length);
      if (chart && timed) xSwitch(holder, axisNames, key, () => redraw(holder));
      return chart;
    };
  }

  const plots = {
    'seconds': seconds, 'speed-up': speedUp, 'budget': budget,
    'efficiency': efficiencyOf(strong, strongRows, 'Efficiency', 'efficiency (%)'),
    'weak': efficiencyOf(weak, weakRows, 'Weak scaling', 'weak efficiency (%)'),
    'loss': curvesOf('loss', 'Loss while training', 'loss (nats)', 1),
    'accuracy': curvesOf('accuracy', 'Accuracy while training', 'accuracy (%)', 100),
    ...runPlots(figures, { axis, css, at, colours, dashes, short, draw, lineOptions, chosen, xSwitch, redraw }),
  };

  const charts = new Map();  // by their places
  function redraw(holder) {
    if (charts.has(holder)) charts.get(holder).destroy();
    charts.delete(holder);
    try {
      const chart = plots[holder.dataset.plot](holder);
      if (chart) charts.set(holder, chart); else holder.remove();
    } catch (error) {  // the others draw all the same
      const p = document.createElement('p');
      p.textContent = `This plot could not be drawn (${error.message}).`;
      holder.replaceChildren(p);
    }
  }
  function drawAll() {
    colours = darkness.matches ? onDark : onLight;
    document.querySelectorAll('[data-plot]').forEach(redraw);
  }
  Chart.defaults.font.family = 'system-ui, sans-serif';
  drawAll();
  darkness.addEventListener('change', drawAll);
}());
