// Runs before the first paint, so that a page in dark mode does not flash white.
(function () {
  'use strict';
  var chosen = null;
  try {
    chosen = localStorage.getItem('firesteel.theme');
  } catch (error) {
    // storage may be switched off: then the system decides
  }
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
})();
