// Light or dark: what the system prefers, unless the reader has chosen.

const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');

/** Whether the page is dark now. @returns {boolean} */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : prefersDark.matches;
}

/** Changes to the other, and remembers it. */
export function toggleTheme() {
  const theme = isDark() ? 'light' : 'dark';
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem('firesteel.theme', theme);
  } catch {
    // not remembered, then
  }
}
