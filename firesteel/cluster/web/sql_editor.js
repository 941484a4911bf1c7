// An editor for SQL: a text field over a coloured copy of its text, with a list of completions.

import { tokens } from './sql_text.js';

/**
 * @typedef {Object} EditorData
 * @property {string} text What it begins with.
 * @property {number|null} mark Where an error is.
 * @property {function(string): void} changed
 * @property {function(string, number): Promise<string[]>} complete
 * @property {function(): void} run
 */

const WORD = /[\w.`$]*$/;

/**
 * The widget of an editor.
 * @param {HTMLElement} element
 * @param {EditorData} data
 */
export function sqlEditor(element, data) {
  let current = data;
  let options = [];
  let active = 0;
  let asked = 0;
  const copy = document.createElement('pre');
  copy.className = 'sql-copy';
  copy.setAttribute('aria-hidden', 'true');
  const field = document.createElement('textarea');
  field.className = 'sql-field';
  field.spellcheck = false;
  field.autocapitalize = 'off';
  field.setAttribute('aria-label', 'SQL statements');
  field.setAttribute('aria-describedby', 'sql-help');
  field.setAttribute('aria-autocomplete', 'list');
  field.value = data.text;
  const list = document.createElement('ul');
  list.className = 'sql-options';
  list.id = 'sql-options';
  list.setAttribute('role', 'listbox');
  list.hidden = true;
  element.append(copy, field, list);

  const colour = () => {
    copy.replaceChildren();
    const cursor = field.selectionStart;
    let hasCursor = false;
    const add = (text, kind, isBad) => {
      const span = document.createElement('span');
      if (kind !== 'other' && kind !== 'word') span.className = `sql-${kind}`;
      if (isBad) span.classList.add('sql-error');
      span.textContent = text;
      copy.append(span);
    };
    const addCursor = () => {
      const span = document.createElement('span');
      span.className = 'sql-cursor';
      copy.append(span);
      hasCursor = true;
    };
    for (const { kind, text, start } of tokens(field.value)) {
      const end = start + text.length;
      const isBad = current.mark !== null && start <= current.mark && current.mark < end;
      if (!hasCursor && cursor <= end && cursor >= start) {
        add(text.slice(0, cursor - start), kind, isBad);
        addCursor();
        add(text.slice(cursor - start), kind, isBad);
      } else add(text, kind, isBad);
    }
    if (!hasCursor) addCursor();
    copy.append('\n');
    field.style.height = `${Math.max(copy.scrollHeight, 150)}px`;
  };

  const showOptions = () => {
    list.replaceChildren();
    list.hidden = options.length === 0;
    field.setAttribute('aria-expanded', String(options.length > 0));
    if (!options.length) return;
    options.forEach((option, index) => {
      const item = document.createElement('li');
      item.textContent = option;
      item.id = `sql-option-${index}`;
      item.setAttribute('role', 'option');
      item.setAttribute('aria-selected', String(index === active));
      item.addEventListener('mousedown', (event) => {
        event.preventDefault();
        take(index);
      });
      list.append(item);
    });
    field.setAttribute('aria-activedescendant', `sql-option-${active}`);
    list.children[active].scrollIntoView({ block: 'nearest' });
    const cursor = /** @type {HTMLElement} */ (copy.querySelector('.sql-cursor'));
    list.style.left = `${Math.min(cursor.offsetLeft, element.clientWidth - 220)}px`;
    list.style.top = `${cursor.offsetTop + cursor.offsetHeight + 4}px`;
  };

  const closeOptions = () => {
    asked++;
    options = [];
    showOptions();
  };

  const complete = async (isWanted) => {
    const before = field.value.slice(0, field.selectionStart);
    const word = (WORD.exec(before) || [''])[0];
    if (!isWanted && word.length < 2) return closeOptions();
    const number = ++asked;
    let found = [];
    try {
      found = await current.complete(field.value, field.selectionStart);
    } catch {
      return; // only a help
    }
    if (number !== asked) return;
    options = found.slice(0, 50);
    active = 0;
    showOptions();
  };

  const take = (index) => {
    const cursor = field.selectionStart;
    const word = (WORD.exec(field.value.slice(0, cursor)) || [''])[0];
    field.setRangeText(options[index], cursor - word.length, cursor, 'end');
    closeOptions();
    changed();
  };

  const changed = () => {
    current.mark = null;
    current.changed(field.value);
    colour();
  };

  field.addEventListener('input', () => {
    changed();
    complete(false);
  });
  field.addEventListener('blur', closeOptions);
  document.addEventListener('selectionchange', moved);
  function moved() {
    if (document.activeElement === field) colour();
  }
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      closeOptions();
      current.run();
    } else if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      complete(true);
    } else if (options.length) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        active = (active + step + options.length) % options.length;
        showOptions();
      } else if (event.key === 'Enter' || event.key === 'Tab') {
        event.preventDefault();
        take(active);
      } else if (event.key === 'Escape') {
        event.preventDefault();
        event.stopPropagation();
        closeOptions();
      }
    }
  });
  requestAnimationFrame(colour);

  return {
    /** @param {EditorData} next */
    update(next) {
      const isOther = next.text !== field.value || next.mark !== current.mark;
      if (next.text !== field.value) field.value = next.text;
      current = next;
      if (isOther) colour();
    },
    destroy() {
      document.removeEventListener('selectionchange', moved);
    },
  };
}

/** What is selected in the editor. @returns {[number, number]} */
export function selection() {
  const field = /** @type {HTMLTextAreaElement|null} */ (document.querySelector('.sql-field'));
  return field ? [field.selectionStart, field.selectionEnd] : [0, 0];
}
