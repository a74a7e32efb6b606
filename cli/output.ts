export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Moves the cursor home and clears the terminal. */
export const CLEAR = '\u001b[H\u001b[2J';

/** True with `--json`: standard error then has nothing but errors, as JSON. */
export function wantsJson(): boolean {
  const words = process.argv.slice(2);
  const end = words.indexOf('--');
  return words.slice(0, end < 0 ? words.length : end).includes('--json');
}

/** Prints to standard error a text that is not part of the answer. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Columns of the terminal; undefined if standard output is not a terminal or its width is unknown. */
export function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns || undefined : undefined;
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0));
}

/** Waits until all output has been written; ignores a closed pipe. */
export function flush(): Promise<void> {
  return new Promise((resolve) => {
    if (process.stdout.destroyed) resolve();
    else process.stdout.write('', () => resolve());
  });
}

/** Replaces control and bidirectional formatting characters with `\xNN` and `\u{…}`. */
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

/** Formats a count: `1 column`, `3 columns`. */
export function counted(n: number, one: string, more: string): string {
  return `${n} ${n === 1 ? one : more}`;
}

export type ReplyFields = Readonly<Record<string, unknown>>;

/** The objects in a list from a server; empty for anything else. */
export function membersOf(value: unknown): readonly ReplyFields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

export function fieldsOf(value: unknown): ReplyFields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

export function textOf(value: unknown): string {
  return visible(typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? ''));
}

export function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}

export interface Progress {
  step(name: string, done?: number, total?: number, more?: string): void;
  end(): void;
}

export async function createProgress(): Promise<Progress> {
  return process.stderr.isTTY ? bar() : lines();
}

async function bar(): Promise<Progress> {
  const { default: cliProgress } = await import('cli-progress');
  const shown = new cliProgress.SingleBar(
    { format: '  {name} {bar} {value}/{total}', hideCursor: true, clearOnComplete: true, barsize: 30 },
    cliProgress.Presets.shades_grey,
  );
  let active = false;
  const end = (): void => {
    if (active) shown.stop();
    active = false;
  };
  return {
    step(name, done = 0, total = 0, more = '') {
      if (total === 0) {
        end();
        note(`${name} …`);
        return;
      }
      const label = { name: `${name}${more}`.padEnd(20) };
      if (!active) shown.start(total, done, label);
      active = true;
      shown.setTotal(total);
      shown.update(done, label);
    },
    end,
  };
}

const LINE_EVERY_MS = 5_000;

function lines(): Progress {
  let last = '';
  let told = 0;
  return {
    step(name, done = 0, total = 0, more = '') {
      const now = performance.now();
      if (name !== last) note(`${name} …`);
      else if (total > 0 && now - told >= LINE_EVERY_MS) note(`${name}: ${done} of ${total}${more}`);
      else return;
      last = name;
      told = now;
    },
    end: () => undefined,
  };
}
