/**
 * Trusted Types policy required by the server's Content-Security-Policy: libraries may clear an element by `innerHTML
 * = ''`; any other HTML throws, so values of an answer are always text. Workers may only be started from the
 * console's own files.
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
