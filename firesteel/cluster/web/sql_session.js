// A session of the SQL Gateway, and the results of its statements.

import { ApiError, call } from './api.js';

const HANDLE = 'firesteel.sql-session';
const MAX_ROWS = 10000;
const MAX_CHANGES = 1000;
const PAUSE_MS = 200;
const HEARTBEAT_MS = 60000;

/** The message of the gateway: the last cause, without its stack. @param {any} error @returns {string} */
export function reason(error) {
  const cause = String(error.message).split('Caused by: ').pop().split('\tat ')[0].trim();
  return cause.replace(/^[\w.]+(?:Exception|Error): /, '');
}

/** The session of this tab; it is opened when it is needed, and again if it is gone. */
export class SqlSession {
  constructor() {
    this.beatAt = 0;
    /** Called when the session is gone. */
    this.lost = () => {};
  }

  /** @returns {Promise<string>} */
  async handle() {
    let handle = sessionStorage.getItem(HANDLE);
    if (!handle) {
      handle = (await call('v4/sessions', { method: 'POST', body: { sessionName: 'web' } })).sessionHandle;
      sessionStorage.setItem(HANDLE, handle);
    }
    return handle;
  }

  /**
   * A request below the session. If there is no such session any more, another one is opened.
   * @param {string} path
   * @param {import('./api.js').Options} [options]
   * @returns {Promise<any>}
   */
  async call(path, options = {}) {
    const handle = await this.handle();
    try {
      return await call(`v4/sessions/${handle}/${path}`, options);
    } catch (error) {
      if (!(error instanceof ApiError) || !error.message.includes(`Session '${handle}' does not exist`)) throw error;
      if (sessionStorage.getItem(HANDLE) === handle) {
        sessionStorage.removeItem(HANDLE);
        this.lost();
      }
      if (path.startsWith('operations/')) throw new ApiError(410, ['The session has ended.']);
      return call(`v4/sessions/${await this.handle()}/${path}`, options);
    }
  }

  /** Keeps the session open. */
  async heartbeat() {
    if (Date.now() - this.beatAt < HEARTBEAT_MS) return;
    this.beatAt = Date.now();
    await this.call('heartbeat', { method: 'POST' });
  }

  /** @param {string} statement @param {number} position @returns {Promise<string[]>} */
  async complete(statement, position) {
    return (await this.call('complete-statement', { method: 'POST', body: { statement, position } })).candidates;
  }

  /**
   * All rows of a statement that has few.
   * @param {string} sql
   * @returns {Promise<any[][]>}
   */
  async rows(sql) {
    const result = new SqlResult(this, sql);
    await result.run(() => {});
    if (result.error) throw new ApiError(500, [result.error]);
    return [...result.rows.values()].map((row) => row.fields);
  }
}

/** One statement: what it has given so far. */
export class SqlResult {
  /** @param {SqlSession} session @param {string} sql */
  constructor(session, sql) {
    this.session = session;
    this.sql = sql;
    this.columns = [];
    /** The rows of the table, by number. @type {Map<number, {fields: any[]}>} */
    this.rows = new Map();
    /** The latest changes. @type {{number: number, kind: string, fields: any[]}[]} */
    this.changes = [];
    this.changeCount = 0;
    this.error = '';
    this.jobId = '';
    this.isQuery = false;
    this.isOk = false;
    this.isRunning = true;
    this.isCancelled = false;
    this.tookMs = 0;
    this.last = 0;
    /** Numbers of rows by their values. @type {Map<string, number[]>} */
    this.numbers = new Map();
    /** @type {number|null} */
    this.replaced = null;
    this.operation = '';
  }

  /** Executes the statement and fetches its result to the end. @param {function(): void} changed */
  async run(changed) {
    const began = Date.now();
    try {
      const answer = await this.session.call('statements', { method: 'POST', body: { statement: this.sql } });
      this.operation = `operations/${answer.operationHandle}`;
      let next = `${this.operation}/result/0?rowFormat=PLAIN_TEXT`;
      while (next && !this.isCancelled) {
        const page = await this.session.call(next);
        next = page.nextResultUri ? page.nextResultUri.split('/').slice(4).join('/') : '';
        if (page.resultType === 'NOT_READY') continue;
        this.columns = page.results.columns;
        this.isQuery = page.isQueryResult;
        this.isOk = page.resultKind === 'SUCCESS';
        this.jobId = page.jobID || '';
        page.results.data.forEach((row) => this.apply(row));
        this.tookMs = Date.now() - began;
        changed();
        if (next && this.isQuery && page.results.data.length) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    } catch (error) {
      if (!this.isCancelled) this.error = reason(error);
    }
    this.tookMs = Date.now() - began;
    this.isRunning = false;
    if (!this.isCancelled) await this.close();
    changed();
  }

  /** Ends the statement and its job. */
  async cancel() {
    this.isCancelled = true;
    await this.close();
  }

  async close() {
    if (this.operation) await this.session.call(`${this.operation}/close`, { method: 'DELETE' }).catch(() => {});
  }

  /** Applies a change to the table. @param {{kind: string, fields: any[]}} row */
  apply({ kind, fields }) {
    const key = JSON.stringify(fields);
    this.changeCount++;
    this.changes.push({ number: this.changeCount, kind, fields });
    if (this.changes.length > MAX_CHANGES) this.changes.shift();
    if (kind === 'UPDATE_BEFORE' || kind === 'DELETE') {
      const numbers = this.numbers.get(key);
      const number = numbers && numbers.pop();
      if (number === undefined) return; // it was so old that it is not shown any more
      if (!numbers.length) this.numbers.delete(key);
      // what follows an update takes its place
      if (kind === 'UPDATE_BEFORE') this.replaced = number;
      else this.rows.delete(number);
      return;
    }
    let number = ++this.last;
    if (this.replaced !== null) {
      if (kind === 'UPDATE_AFTER') number = this.replaced;
      else this.rows.delete(this.replaced);
      this.replaced = null;
    }
    this.rows.set(number, { fields });
    if (!this.numbers.has(key)) this.numbers.set(key, []);
    this.numbers.get(key).push(number);
    if (this.rows.size > MAX_ROWS) this.forget();
  }

  /** Removes the oldest row. */
  forget() {
    const [number, { fields }] = this.rows.entries().next().value;
    this.rows.delete(number);
    const key = JSON.stringify(fields);
    const others = (this.numbers.get(key) || []).filter((other) => other !== number);
    if (others.length) this.numbers.set(key, others);
    else this.numbers.delete(key);
  }
}
