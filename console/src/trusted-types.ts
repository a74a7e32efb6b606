/**
 * Trusted Types policy required by the server's Content-Security-Policy. Libraries may clear an element with
 * `innerHTML = ''`. Any other HTML throws, so values in answers are always shown as text. Workers can be started only
 * from the console's own files.
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
