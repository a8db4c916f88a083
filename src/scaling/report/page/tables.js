// Sorts and filters tables: `table.sortable` by any column, with buttons in its heads, `table.filterable` by a
// text. Rows apart stay where they are, at the end of the rows that they follow. Cells with data-value are numbers.
(function () {
  'use strict';
  const missing = cell => !cell || (!('value' in cell.dataset) && /^(–|n\/a.*)?$/.test(cell.textContent.trim()));
  const words = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

  // Numbers where any row of the column has one; what is missing comes last in both directions.
  function order(column, up, rows) {
    const numbers = rows.some(row => row.cells[column] && 'value' in row.cells[column].dataset);
    const lost = cell => numbers ? !cell || !('value' in cell.dataset) : missing(cell);
    return (a, b) => {
      const x = a.cells[column], y = b.cells[column];
      if (lost(x) || lost(y)) return lost(x) - lost(y);
      const by = numbers ? Number(x.dataset.value) - Number(y.dataset.value)
        : words.compare(x.textContent.trim(), y.textContent.trim());
      return up ? by : -by;
    };
  }

  // Rows between two rows apart are sorted among themselves.
  function sort(body, column, up) {
    const blocks = [[]];
    for (const row of [...body.rows]) {
      if (row.classList.contains('apart')) blocks.push([row], []);
      else blocks[blocks.length - 1].push(row);
    }
    for (const block of blocks) body.append(...(block.length > 1 ? block.sort(order(column, up, block)) : block));
  }

  function makeSortable(table) {
    const head = table.tHead && table.tHead.rows[table.tHead.rows.length - 1], body = table.tBodies[0];
    if (!head || !body) return;
    [...head.cells].forEach((cell, column) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener('click', () => {
        const state = cell.getAttribute('aria-sort');
        // Numbers begin with the largest, which is what people look for; texts with the first.
        const numbers = [...body.rows].some(row => row.cells[column] && 'value' in row.cells[column].dataset);
        const up = state ? state === 'descending' : !numbers;
        for (const other of head.cells) other.removeAttribute('aria-sort');
        cell.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        sort(body, column, up);
      });
    });
  }

  function makeFilterable(table, number) {
    const body = table.tBodies[0], place = table.closest('.table') || table;
    if (!body) return;
    const line = document.createElement('p'), label = document.createElement('label');
    const field = document.createElement('input'), count = document.createElement('output');
    line.className = 'filter';
    field.type = 'search';
    field.id = `filter-${number}`;
    label.htmlFor = field.id;
    label.textContent = 'Show rows with';
    count.htmlFor = field.id;
    line.append(label, ' ', field, ' ', count);
    place.before(line);
    // All words must be in the row, in any order.
    field.addEventListener('input', () => {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(word => word);
      let shown = 0;
      for (const row of body.rows) {
        const text = [...row.cells].map(cell => cell.textContent).join(' ').toLowerCase();
        row.hidden = !wanted.every(word => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = wanted.length ? `${shown} of ${body.rows.length}` : '';
    });
  }

  // Heads stand upright where the table is wider than its place otherwise.
  function fitHeads(table) {
    const place = table.closest('.table') || table;
    const fit = () => {
      table.classList.remove('upright');
      table.classList.toggle('upright', place.scrollWidth > place.clientWidth);
    };
    fit();
    window.addEventListener('resize', fit);
  }

  document.querySelectorAll('table.sortable').forEach(makeSortable);
  document.querySelectorAll('table.filterable').forEach(makeFilterable);
  document.querySelectorAll('table.filterable, table.shaded').forEach(fitHeads);
}());
