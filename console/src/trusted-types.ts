/**
 * The page's policy of markup, which the server's Content-Security-Policy demands: libraries may empty an element by
 * `innerHTML = ''`, and whatever else would become markup throws. A value of an answer is text, always.
 */
export function refuseMarkup(): void {
  window.trustedTypes?.createPolicy('default', {
    createHTML: (text) => {
      if (text === '') return text;
      throw new TypeError('nothing is shown as markup here');
    },
  });
}
