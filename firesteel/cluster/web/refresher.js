// Polls the REST API: not while the tab is hidden, and with a backoff when there is no answer.

import { ApiError, call, callOr, text } from './api.js';

/**
 * @typedef {Object} Fetcher
 * @property {function(any, Object<string, any>=): Promise<any>} get The answer of an endpoint.
 * @property {function(any, any, Object<string, any>=): Promise<any>} getOr The answer, or another value where there is none.
 * @property {function(any, Object<string, any>=): Promise<string>} text
 *
 * @typedef {Object} Listener
 * @property {function(Fetcher): Promise<void>} load
 * @property {function(any): void} failed
 * @property {function(): void} recovered
 * @property {function(): void} changed
 */

const MAX_WAIT_MS = 10000;

/** Calls a function at intervals. */
export class Refresher {
  /** @param {Listener} listener */
  constructor(listener) {
    this.listener = listener;
    this.interval = 3000;
    this.isPaused = false;
    /** When the last refresh succeeded. @type {number|null} */
    this.updatedAt = null;
    /** Since when there is no answer. @type {number|null} */
    this.lostSince = null;
    /** The message of a JobManager that cannot serve. */
    this.lostReason = '';
    this.misses = 0;
    this.round = 0;
    /** @type {AbortController|null} */
    this.controller = null;
    this.timer = 0;
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) clearTimeout(this.timer);
      else this.refresh();
    });
  }

  /** Stops or resumes. */
  togglePaused() {
    this.isPaused = !this.isPaused;
    if (this.isPaused) clearTimeout(this.timer);
    else this.refresh();
    this.listener.changed();
  }

  /** Refreshes now; one that is under way is given up. */
  async refresh() {
    const round = ++this.round;
    clearTimeout(this.timer);
    if (this.controller) this.controller.abort();
    this.controller = new AbortController();
    try {
      await this.listener.load(fetcher(this.controller.signal));
      if (round !== this.round) return;
      this.succeeded();
    } catch (error) {
      if (round !== this.round) return;
      this.failed(error);
    }
    this.listener.changed();
    if (!this.isPaused && !document.hidden) this.timer = setTimeout(() => this.refresh(), this.wait());
  }

  succeeded() {
    const wasLost = this.lostSince !== null;
    this.lostSince = null;
    this.misses = 0;
    this.updatedAt = Date.now();
    if (wasLost) this.listener.recovered();
  }

  /** @param {any} error */
  failed(error) {
    if (error instanceof ApiError && error.isUnreachable) {
      this.lostSince ||= Date.now();
      this.lostReason = error.status ? error.message : '';
      this.misses += 1;
    } else {
      // the server has answered, if with an error
      if (error instanceof ApiError && this.lostSince !== null) this.succeeded();
      if (!(error instanceof ApiError)) console.error(error);
      this.listener.failed(error);
    }
  }

  wait() {
    return this.misses ? Math.min(MAX_WAIT_MS, this.interval, 1000 * 2 ** (this.misses - 1)) : this.interval;
  }
}

/** @param {AbortSignal} signal @returns {Fetcher} */
function fetcher(signal) {
  const options = { signal, quiet: true };
  return {
    get: (path, query) => call(path, { ...options, query }),
    getOr: (path, otherwise, query) => callOr(path, otherwise, { ...options, query }),
    text: (path, query) => text(path, { ...options, query }),
  };
}
