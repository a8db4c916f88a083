// Shows the command that made a figure, by mouse, touch or keyboard, and copies it.
(function () {
  'use strict';
  const cells = document.querySelectorAll('td[data-command]');
  if (!cells.length) return;

  const make = (name, facts, ...children) => {
    const element = Object.assign(document.createElement(name), facts);
    element.append(...children);
    return element;
  };
  const code = make('code', {});
  const copy = make('button', { type: 'button', textContent: 'Copy' });
  const close = make('button', { type: 'button', textContent: 'Close' });
  const said = make('span', {});
  const box = make('div', { className: 'command', hidden: true }, make('div', {}, 'Command of this figure'), code,
    make('div', { className: 'buttons' }, copy, close, said));
  said.setAttribute('aria-live', 'polite');
  box.setAttribute('role', 'dialog');
  box.setAttribute('aria-label', 'Command of this figure');
  document.body.append(box);

  let opener = null;
  function hide(focus) {
    if (!opener) return;
    box.hidden = true;
    opener.setAttribute('aria-expanded', 'false');
    if (focus) opener.focus();
    opener = null;
  }

  // Below the figure, and within the window whatever column that is in.
  function show(button) {
    hide(false);
    opener = button;
    button.setAttribute('aria-expanded', 'true');
    code.textContent = button.closest('td').dataset.command;
    said.textContent = '';
    box.hidden = false;
    const at = button.getBoundingClientRect(), room = document.documentElement.clientWidth;
    box.style.left = `${window.scrollX + Math.max(8, Math.min(at.left, room - box.offsetWidth - 8))}px`;
    box.style.top = `${window.scrollY + at.bottom + 4}px`;
    copy.focus({ preventScroll: true });
    box.scrollIntoView({ block: 'nearest' });
  }

  function select() {
    const range = document.createRange(), selection = window.getSelection();
    range.selectNodeContents(code);
    selection.removeAllRanges();
    selection.addRange(range);
  }

  // Some browsers give pages from files no clipboard; there a selected text is copied the old way, or by the reader.
  async function copyCommand() {
    let done = false;
    try {
      await navigator.clipboard.writeText(code.textContent);
      done = true;
    } catch (refused) {
      select();
      try { done = document.execCommand('copy'); } catch (alsoRefused) { done = false; }
    }
    said.textContent = done ? 'Copied' : 'Selected: copy it with Ctrl+C';
  }

  for (const cell of cells) {
    const button = make('button', { type: 'button', className: 'figure', title: cell.dataset.command }, ...cell.childNodes);
    button.setAttribute('aria-haspopup', 'dialog');
    button.setAttribute('aria-expanded', 'false');
    button.addEventListener('click', () => (opener === button ? hide(true) : show(button)));
    cell.append(button);
  }
  copy.addEventListener('click', copyCommand);
  close.addEventListener('click', () => hide(true));
  document.addEventListener('keydown', event => { if (event.key === 'Escape') hide(true); });
  document.addEventListener('pointerdown', event => {
    if (opener && !box.contains(event.target) && !opener.contains(event.target)) hide(false);
  });
  window.addEventListener('resize', () => hide(false));
}());
