// Requests to the REST API of the JobManager this page came from.

import { askForToken } from './token.js';

const TOKEN = 'firesteel.token';

/** An answer other than a success, or none at all. */
export class ApiError extends Error {
  /** @param {number} status 0: the JobManager could not be reached. @param {string[]} messages */
  constructor(status, messages) {
    super(messages.join('\n') || `HTTP status ${status}`);
    this.status = status;
    this.messages = messages;
  }

  /** Whether there was no answer, or one of a server that cannot serve now, such as a standby without a leader. */
  get isUnreachable() {
    return this.status === 0 || this.status === 503;
  }
}

/**
 * @typedef {{method?: string, body?: any, query?: Object<string, any>, signal?: AbortSignal, quiet?: boolean}} Options
 */

/** @returns {string|null} */
function token() {
  try {
    return sessionStorage.getItem(TOKEN);
  } catch {
    return null;
  }
}

/** Keeps the token for as long as the tab is open. @param {string|null} value */
export function setToken(value) {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
}

/**
 * The address of an endpoint. Relative, so that a JobManager behind a path of a proxy works, too.
 * @param {Array<string|number>|string} path
 * @param {Object<string, any>} [query]
 * @returns {string}
 */
export function url(path, query = {}) {
  const parts =
    typeof path === 'string' ? path.replace(/^\//, '') : path.map((part) => encodeURIComponent(part)).join('/');
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value));
  const text = search.toString().replace(/%2C/g, ',');
  return text ? `${parts}?${text}` : parts;
}

/** @param {string} address @param {Options} options @returns {Promise<Response>} */
async function send(address, options) {
  const headers = new Headers({ accept: 'application/json, text/plain;q=0.9' });
  if (token()) headers.set('authorization', `Bearer ${token()}`);
  let body = options.body;
  if (body !== undefined && !(body instanceof FormData)) {
    headers.set('content-type', 'application/json; charset=UTF-8');
    body = JSON.stringify(body);
  }
  try {
    return await fetch(address, {
      method: options.method || 'GET',
      headers,
      body,
      signal: options.signal,
      cache: 'no-store',
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, ['The JobManager cannot be reached.']);
  }
}

/** @param {Response} response @returns {Promise<ApiError>} */
async function failure(response) {
  const text = await response.text().catch(() => '');
  try {
    const messages = JSON.parse(text).errors;
    if (Array.isArray(messages)) return new ApiError(response.status, messages.map(String));
  } catch {
    // not JSON: a proxy's page perhaps
  }
  return new ApiError(response.status, [text.slice(0, 500) || `HTTP status ${response.status}`]);
}

/** @param {Array<string|number>|string} path @param {Options} options @returns {Promise<Response>} */
async function request(path, options) {
  const address = url(path, options.query);
  let response = await send(address, options);
  while (response.status === 401) {
    const error = await failure(response);
    const given = await askForToken(token() !== null, error.message, options.quiet === true);
    setToken(given);
    if (!given) throw error;
    response = await send(address, options);
  }
  if (!response.ok) throw await failure(response);
  return response;
}

/**
 * What an endpoint answers, decoded.
 * @param {Array<string|number>|string} path
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function call(path, options = {}) {
  const response = await request(path, options);
  const text = await response.text();
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(response.status, [
      `The answer of /${url(path)} is not JSON. Check that this is the address of a JobManager.`,
    ]);
  }
}

/**
 * The text an endpoint answers with.
 * @param {Array<string|number>|string} path
 * @param {Options} [options]
 * @returns {Promise<string>}
 */
export async function text(path, options = {}) {
  return (await request(path, options)).text();
}

/**
 * What an endpoint answers, or another value where it does not apply (4xx).
 * @param {Array<string|number>|string} path
 * @param {any} otherwise
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function callOr(path, otherwise, options = {}) {
  try {
    return await call(path, options);
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0 && error.status !== 401) return otherwise;
    throw error;
  }
}

/**
 * Triggers a long operation and asks after it until it is done.
 * @param {Array<string>} path Where to trigger it.
 * @param {Array<string>} poll Where to ask; the id of the request is added.
 * @param {Object<string, any>} body
 * @param {function(string): void} [triggered] Told the id of the request.
 * @returns {Promise<any>} The operation's result.
 */
export async function operate(path, poll, body, triggered = () => {}) {
  const id = (await call(path, { method: 'POST', body }))['request-id'];
  triggered(id);
  let wait = 100;
  for (;;) {
    const answer = await call([...poll, id]);
    if (answer.status.id === 'COMPLETED') {
      const operation = answer.operation || {};
      const cause = operation['failure-cause'] || operation.failureCause;
      if (cause) throw new ApiError(500, [lastLine(cause['stack-trace'] || cause.class)]);
      return operation;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 1.5, 2000);
  }
}

/**
 * The message of a stack trace: Java's in its first line, Python's in its last.
 * @param {string} trace
 * @returns {string}
 */
function lastLine(trace) {
  const lines = String(trace).trim().split('\n');
  return lines[0].startsWith('Traceback') ? lines[lines.length - 1] : lines[0];
}

/**
 * Hands a text to the reader as a file. A plain link would come without the token.
 * @param {Array<string|number>|string} path
 * @param {string} name
 */
export async function download(path, name) {
  const blob = await (await request(path, {})).blob();
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/**
 * Calls a function for each item, a few at a time.
 * @template T, R
 * @param {T[]} items
 * @param {function(T): Promise<R>} job
 * @param {number} [width]
 * @returns {Promise<R[]>}
 */
export async function eachOf(items, job, width = 6) {
  const results = new Array(items.length);
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await job(items[index]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, work));
  return results;
}
