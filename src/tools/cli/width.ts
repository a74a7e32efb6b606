/** Columns that `text` takes on a terminal: 2 for East Asian wide characters and emoji, 0 for what combines. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes().segment(text)) width += graphemeWidth(segment);
  return width;
}

/** `text` filled up to `width` columns. */
export function padTo(text: string, width: number, align: 'left' | 'right'): string {
  const room = ' '.repeat(Math.max(0, width - widthOf(text)));
  return align === 'left' ? text + room : room + text;
}

/** As much of `text` as takes `width` columns, with `more` at its end where something is left out. */
export function cutTo(text: string, width: number, more: string): string {
  if (widthOf(text) <= width) return text;
  const room = width - widthOf(more);
  let cut = '';
  let taken = 0;
  for (const { segment } of graphemes().segment(text)) {
    taken += graphemeWidth(segment);
    if (taken > room) break;
    cut += segment;
  }
  return `${cut}${more}`;
}

/** Made for the first text that needs it: that takes longer than the rest of a small answer. */
function graphemes(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter;
}

let segmenter: Intl.Segmenter | null = null;
const EMOJI = /\p{Emoji_Presentation}|\p{Emoji}\ufe0f/u;
const NOTHING = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;
/** East_Asian_Width W and F (Unicode TR 11), by block. */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]/u;

function graphemeWidth(grapheme: string): number {
  if (NOTHING.test(grapheme)) return 0;
  return EMOJI.test(grapheme) || WIDE.test(grapheme) ? 2 : 1;
}
