// The text of SQL: its tokens, and where its statements begin and end.

const KEYWORDS = new Set(
  (
    'ADD ALL ALTER ANALYZE AND ANY ARRAY AS ASC BEGIN BETWEEN BIGINT BINARY BOOLEAN BY BYTES CALL CASE CAST CATALOG ' +
    'CATALOGS CHANGELOG_MODE CHAR COLUMNS COMMENT COMPILE CONSTRAINT COUNT CREATE CROSS CUBE CUMULATE CURRENT ' +
    'DATABASE DATABASES DATE DAY DECIMAL DEFINE DELETE DESC DESCRIBE DESCRIPTOR DISTINCT DOUBLE DROP ELSE END ENFORCED ' +
    'ESCAPE EXCEPT EXECUTE EXISTS EXPLAIN FALSE FETCH FILTER FIRST FLOAT FOLLOWING FOR FROM FULL FUNCTION FUNCTIONS ' +
    'GROUP GROUPING HAVING HOP HOUR IF IN INNER INSERT INT INTEGER INTERSECT INTERVAL INTO IS JOB JOBS JOIN KEY LAST ' +
    'LATERAL LEFT LIKE LIMIT LOAD MAP MATCH_RECOGNIZE MEASURES METADATA MINUTE MODEL MODULE MODULES MONTH MULTISET ' +
    'NATURAL NOT NULL NULLS OF OFFSET ON OR ORDER OUTER OVER OVERWRITE PARTITION PARTITIONED PATTERN PLAN PRECEDING ' +
    'PRIMARY RANGE RECURSIVE RENAME RESET RIGHT ROLLUP ROW ROWS SECOND SELECT SESSION SET SETS SHOW SIMILAR SMALLINT ' +
    'STATEMENT STOP STRING SYSTEM_TIME TABLE TABLES TEMPORARY THEN TIME TIMESTAMP TIMESTAMP_LTZ TINYINT TO TRUE TUMBLE ' +
    'UNBOUNDED UNION UNIQUE UNLOAD UNNEST UPDATE USE USING VALUES VARBINARY VARCHAR VIEW VIEWS VIRTUAL WATERMARK WHEN ' +
    'WHERE WINDOW WITH WITHIN YEAR'
  ).split(' '),
);

const TOKEN =
  /(--[^\n]*|\/\*(?:(?!\/\*|\*\/)[\s\S])*(?:\*\/|$))|('(?:[^']|'')*'?)|(`(?:[^`]|``)*`?)|(\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|([A-Za-z_$][\w$]*)|(\s+|[\s\S])/g;
const KINDS = ['comment', 'string', 'name', 'number', 'word', 'other'];

/** @typedef {{kind: string, text: string, start: number}} Token */

/**
 * The tokens of a text; together they are all of it.
 * @param {string} text
 * @returns {Token[]}
 */
export function tokens(text) {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    const kind = KINDS[match.slice(1).findIndex((part) => part !== undefined)];
    const isKeyword = kind === 'word' && KEYWORDS.has(match[0].toUpperCase());
    found.push({ kind: isKeyword ? 'keyword' : kind, text: match[0], start: match.index });
  }
  return found;
}

/**
 * The statements of a text, without their semicolons. EXECUTE STATEMENT SET BEGIN … END is one.
 * @param {string} text
 * @returns {{start: number, end: number, sql: string}[]}
 */
export function statements(text) {
  const found = [];
  let start = 0;
  let words = [];
  const close = (end) => {
    const sql = text.slice(start, end);
    const lead = sql.length - sql.trimStart().length;
    if (words.length) found.push({ start: start + lead, end, sql: sql.trim() });
    start = end + 1;
    words = [];
  };
  for (const token of tokens(text)) {
    if (token.kind === 'comment' || (token.kind === 'other' && !token.text.trim())) continue;
    const isBlock = /^(EXECUTE|EXPLAIN|COMPILE)\b.*\bSTATEMENT SET BEGIN\b/.test(words.join(' ')) && words[words.length - 1] !== 'END';
    if (token.text === ';' && !isBlock) close(token.start);
    else words.push(token.text.toUpperCase());
  }
  close(text.length);
  return found;
}

/**
 * The statements that a selection touches; without a selection, that of the cursor.
 * @param {string} text
 * @param {number} from
 * @param {number} to
 */
export function chosen(text, from, to) {
  const all = statements(text);
  if (from !== to) return all.filter((one) => one.start < to && one.end > from);
  const at = all.find((one) => from <= one.end) || all[all.length - 1];
  return at ? [at] : [];
}

/**
 * A place in a text, from a line and a column of a statement in it, both from 1.
 * @param {string} text
 * @param {number} start Where the statement begins.
 * @param {number} line
 * @param {number} column
 * @returns {number}
 */
export function placeOf(text, start, line, column) {
  let at = start;
  for (let left = line - 1; left > 0; left--) {
    const end = text.indexOf('\n', at);
    if (end < 0) return text.length;
    at = end + 1;
  }
  return Math.min(at + column - 1, text.length);
}
