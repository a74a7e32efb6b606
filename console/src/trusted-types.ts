/**
 * The page's policy of markup, which the server's Content-Security-Policy demands: libraries may empty an element by
 * `innerHTML = ''`, and whatever else would become markup throws. A value of an answer is text, always. Threads are
 * begun from files of the console's own alone.
 */
export function refuseMarkup(): void {
  window.trustedTypes?.createPolicy('default', {
    createHTML: (text) => {
      if (text === '') return text;
      throw new TypeError('nothing is shown as markup here');
    },
    createScriptURL: (url) => {
      const { origin, pathname } = new URL(url, location.href);
      if (origin === location.origin && pathname.startsWith('/console/assets/')) return url;
      throw new TypeError('scripts come from the console alone');
    },
  });
}
