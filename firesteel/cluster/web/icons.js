// Icons, drawn with the colour of the text around them.

import { h } from './vdom.js';

/** Paths in a box of 24 by 24. @type {Object<string, string>} */
const PATHS = {
  running: 'M8 5v14l11-7z',
  finished: 'M5 12.5l4.5 4.5L19 7.5',
  failed: 'M6 6l12 12M18 6L6 18',
  canceled: 'M12 3a9 9 0 100 18 9 9 0 000-18zM5.6 5.6l12.8 12.8',
  waiting: 'M12 4a8 8 0 100 16 8 8 0 000-16zM12 8v4l3 2',
  restarting: 'M19 12a7 7 0 11-2.1-5M19 3v5h-5',
  warning: 'M12 4L2.5 20h19zM12 10v5M12 17.5v.5',
  info: 'M12 3a9 9 0 100 18 9 9 0 000-18zM12 11v6M12 7v.5',
  close: 'M6 6l12 12M18 6L6 18',
  sun: 'M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2',
  moon: 'M20 14A8 8 0 0110 4a8 8 0 1010 10z',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  fit: 'M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5',
  upload: 'M12 16V4M7 9l5-5 5 5M4 20h16',
  download: 'M12 4v12M7 11l5 5 5-5M4 20h16',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  search: 'M10.5 4a6.5 6.5 0 100 13 6.5 6.5 0 000-13zM15.5 15.5L21 21',
  down: 'M6 9l6 6 6-6',
  right: 'M9 6l6 6-6 6',
};

/**
 * An icon; silent for screen readers, as text always stands beside it.
 * @param {string} name
 * @param {string} [extra] Further classes.
 */
export function icon(name, extra = '') {
  return h(
    'svg',
    {
      class: `icon ${name === 'running' ? 'icon-filled ' : ''}${extra}`,
      viewBox: '0 0 24 24',
      'aria-hidden': 'true',
      focusable: 'false',
    },
    h('path', { d: PATHS[name] || PATHS.info }),
  );
}
