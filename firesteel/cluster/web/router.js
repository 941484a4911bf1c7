// Routes in the fragment of the address: `#/jobs/<id>/checkpoints?vertex=…`.

/**
 * @typedef {Object} Route
 * @property {string} name The name of the page.
 * @property {Object<string, string>} params What the path's placeholders stand for.
 * @property {URLSearchParams} query
 * @property {string} path
 */

/** Paths that Flink's own dashboard has, and what they are here. @type {Array<[RegExp, string]>} */
const ALIASES = [
  [/^\/job\/(?:running|completed)$/, '/overview'],
  [/^\/job\/(?:running|completed)\/([^/]+)/, '/jobs/$1'],
  [/^\/task-manager\/([^/]+)/, '/taskmanagers/$1'],
  [/^\/task-manager$/, '/taskmanagers'],
  [/^\/job-manager/, '/jobmanager'],
];

/**
 * Finds the page of a fragment.
 * @param {string} fragment
 * @param {Object<string, string>} patterns Names of pages by pattern, such as `/jobs/:jobid/:tab?`.
 * @returns {Route|null}
 */
export function match(fragment, patterns) {
  let [path, query] = split(fragment);
  for (const [from, to] of ALIASES) path = path.replace(from, to);
  const parts = path.split('/').filter(Boolean);
  for (const [pattern, name] of Object.entries(patterns)) {
    const wanted = pattern.split('/').filter(Boolean);
    const needed = wanted.filter((part) => !part.endsWith('?')).length;
    if (parts.length < needed || parts.length > wanted.length) continue;
    /** @type {Object<string, string>} */
    const params = {};
    const fits = parts.every((part, index) => {
      const expected = wanted[index];
      if (!expected.startsWith(':')) return expected === part;
      params[expected.replace(/^:|\?$/g, '')] = decode(part);
      return true;
    });
    if (fits) return { name, params, query: new URLSearchParams(query), path };
  }
  return null;
}

/** @param {string} fragment @returns {[string, string]} */
function split(fragment) {
  const text = fragment.replace(/^#/, '') || '/';
  const at = text.indexOf('?');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** @param {string} part @returns {string} */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * The address of a page.
 * @param {Array<string>} parts
 * @param {Object<string, any>} [query] Those that are empty are left out.
 * @returns {string}
 */
export function href(parts, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value));
  }
  const text = search.toString();
  return `#/${parts.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

/** Goes to a page. @param {string} to @param {boolean} [replace] Without a step in the history. */
export function go(to, replace = false) {
  if (replace) {
    history.replaceState(null, '', to);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  } else {
    location.hash = to;
  }
}
