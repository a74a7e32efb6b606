import type { Diagnostic, TextEdit } from 'vscode-languageserver/node';

/** What a diagnostic tells its code action: the hint, as the catalogue words it. */
export interface FaultData {
  readonly hint: string | null;
}

/** A change that a hint proposes. */
export interface Fix {
  readonly title: string;
  readonly edit: TextEdit;
}

/** The change that the hint of a diagnostic proposes, to what it marks; null where it proposes none. */
export function fixFor(
  { range, message }: Pick<Diagnostic, 'range' | 'message'>,
  hint: string | null,
  marked: string,
): Fix | null {
  const [, better] = /^perhaps you meant `([^`]+)`/.exec(hint ?? '') ?? [];
  if (better !== undefined) {
    const newText = replaced(
      marked,
      better,
      [...`${message}`.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word),
    );
    return newText === null ? null : { title: `Change to \`${better}\``, edit: { range, newText } };
  }
  if (/needs quotes/.test(hint ?? '') && !/["'\n]/.test(marked) && marked !== '')
    return { title: 'Put it into quotes', edit: { range, newText: `"${marked}"` } };
  return null;
}

/** `marked` with the word that is wrong replaced: all of it, or the one place where a word of the message stands. */
function replaced(marked: string, better: string, words: readonly string[]): string | null {
  const [, quote = '', plain = ''] = /^(["']?)([^"'\n]*)\1$/.exec(marked) ?? [];
  if (/^[\p{L}\p{N}_.:@/ -]+$/u.test(plain) && !/[\s.]/.test(plain.trim()))
    return better.startsWith('"') && quote === '"' ? better : `${quote}${better}${quote}`;
  for (const word of words) {
    const parts = marked.split(
      new RegExp(
        `(?<![\\p{L}\\p{N}_])${word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\p{L}\\p{N}_])`,
        'u',
      ),
    );
    if (parts.length === 2) return parts.join(better);
  }
  return null;
}
