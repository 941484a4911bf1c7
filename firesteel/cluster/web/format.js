// How numbers, times and sizes are written.

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
const NO_WATERMARK = -9223372036854775808;
const LAST_WATERMARK = 9223372036854775807;

/** What stands where there is no value. */
export const NONE = '–';

/** Whether something is a number that can be shown. @param {any} value @returns {boolean} */
export const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** @param {number} value @returns {string} */
function short(value) {
  if (value !== 0 && Math.abs(value) < 10) return String(Math.round(value * 100) / 100);
  return Math.abs(value) < 100 ? String(Math.round(value * 10) / 10) : String(Math.round(value));
}

/** A size with a unit: 10322 is `10.1 KB`. @param {any} value @returns {string} */
export function bytes(value) {
  if (!isNumber(value) || value < 0) return NONE;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : short(value)} ${UNITS[unit]}`;
}

/** A whole number with separators: `1,234,567`. @param {any} value @returns {string} */
export const count = (value) => (isNumber(value) ? Math.round(value).toLocaleString('en-US') : NONE);

/** A number in few characters: `12.3 k`. @param {any} value @returns {string} */
export function compact(value) {
  if (!isNumber(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e12) return value.toExponential(2);
  // four digits are read as easily as a unit
  if (size >= 1e9) return `${short(value / 1e9)} G`;
  if (size >= 1e6) return `${short(value / 1e6)} M`;
  if (size >= 1e4) return `${short(value / 1e3)} k`;
  return short(value).replace(/\B(?=(\d{3})+$)/, ',');
}

/** A share of 1 in percent. @param {any} value @returns {string} */
export const percent = (value) => (isNumber(value) ? `${Math.round(value * 100)}%` : NONE);

/** A length of time, given in milliseconds. @param {any} value @returns {string} */
export function duration(value) {
  if (!isNumber(value) || value < 0) return NONE;
  if (value < 1000) return `${Math.round(value)} ms`;
  const seconds = Math.floor(value / 1000);
  if (seconds < 60) return `${value < 10000 ? short(value / 1000) : seconds} s`;
  const parts = [
    [Math.floor(seconds / 86400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([amount]) => Number(amount) > 0);
  return parts
    .slice(first, first + 2)
    .map(([amount, unit]) => `${amount} ${unit}`)
    .join(' ');
}

const two = (value) => String(value).padStart(2, '0');

/** The time of day of an instant. @param {any} at @returns {string} */
export function clock(at) {
  if (!isNumber(at) || at <= 0) return NONE;
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Day and time of an instant, in the reader's time zone. @param {any} at @returns {string} */
export function dateTime(at) {
  if (!isNumber(at) || at <= 0 || at > 8.64e15) return NONE;
  const date = new Date(at);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(at)}`;
}

/** A watermark, given as text: an instant, or one of its two ends. @param {any} value @returns {string} */
export function watermark(value) {
  if (value === null || value === undefined || value === '' || value === 'NaN') return NONE;
  const at = Number(value);
  if (!Number.isFinite(at)) return String(value);
  if (at <= NO_WATERMARK) return 'No watermark yet';
  if (at >= LAST_WATERMARK) return 'End of input';
  // small ones are a program's own counters, not instants
  return Math.abs(at) < 1e11 ? count(at) : `${dateTime(at)}.${String(Math.abs(at) % 1000).padStart(3, '0')}`;
}

/** One or many: `plural(2, 'job')` is `2 jobs`. @param {number} amount @param {string} noun @returns {string} */
export const plural = (amount, noun) => `${count(amount)} ${noun}${amount === 1 ? '' : 's'}`;

/** The first characters of an id. @param {string} id @returns {string} */
export const shortId = (id) => String(id).slice(0, 8);

/** The text of a plan's description, whose lines Flink ends with `<br/>`. @param {string} text @returns {string} */
export const description = (text) =>
  String(text || '')
    .replace(/<br\s*\/?>/g, '\n')
    .replace(/&gt;/g, '>')
    .replace(/&lt;/g, '<')
    .replace(/&amp;/g, '&')
    .trim();
