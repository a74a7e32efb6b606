/** What a text has in its FROM: by alias or by its own name, which entity. */
export type Scope = ReadonlyMap<string, string>;

const NAME = String.raw`"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*`;
const ITEM = new RegExp(
  String.raw`\b(?:from|join)\s+(?:(?:osl\s*\.\s*)?entities\s*\.\s*)?(${NAME})(?!\s*\()(?:\s+(?:as\s+)?(${NAME}))?`,
  'giu',
);
const NO_ALIAS =
  /^(?:where|on|using|join|inner|left|right|full|cross|natural|group|order|having|limit|offset|union|intersect|except|window|fetch)$/i;

/** The text without what stands in strings and comments; every place stays where it is. */
export function codeOf(text: string): string {
  return text.replace(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)/g, (part) =>
    part.replace(/[^\n]/g, ' '),
  );
}

/** Names as they are compared: folded, without quotes. */
export function plain(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase();
}

/** A rough reading, good enough to offer names: the gateway alone knows what a text means. */
export function scopeOf(text: string): Scope {
  const scope = new Map<string, string>();
  for (const [, entity = '', alias] of codeOf(text).matchAll(ITEM)) {
    const name = plain(entity);
    scope.set(alias === undefined || NO_ALIAS.test(alias) ? name : plain(alias), name);
  }
  return scope;
}
