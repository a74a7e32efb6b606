/** Standard output, with a line end. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Standard error: what is not part of the answer. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** The columns of the terminal that standard output is; undefined where it is none, or does not know how wide it is. */
export function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns || undefined : undefined;
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0));
}

/**
 * Waits until what was printed has been taken. A reader that went away, as `head` does, is no fault of ours.
 */
export function flush(): Promise<void> {
  return new Promise((resolve) => {
    if (process.stdout.destroyed) resolve();
    else process.stdout.write('', () => resolve());
  });
}

/** Characters that would draw on the terminal, or turn its text around, as `\xNN` and `\u{…}`. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (c) => ESCAPES.get(c) ?? escaped(c),
  );
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

function escaped(character: string): string {
  const code = character.charCodeAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
}

/** `1 column`, `3 columns`. */
export function counted(n: number, one: string, more: string): string {
  return `${n} ${n === 1 ? one : more}`;
}

export type ReplyFields = Readonly<Record<string, unknown>>;

/** The objects in a list that a server sent; none where it sent something else. */
export function membersOf(value: unknown): readonly ReplyFields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

export function fieldsOf(value: unknown): ReplyFields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** A value of a server's answer as it may stand on a terminal. */
export function textOf(value: unknown): string {
  return visible(typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? ''));
}

export function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}
