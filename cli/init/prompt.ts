import { createInterface, type Interface } from 'node:readline';
import { EXIT, Failure } from '../exit.js';
import { note } from '../output.js';

/** Asks the user. Every question has a default, which is used for an empty answer. */
export interface Prompt {
  readonly assumes: boolean;
  ask(question: string, fallback: string): Promise<string>;
  confirm(question: string, fallback: boolean): Promise<boolean>;
  /** Asks without echoing the answer. */
  hidden(question: string): Promise<string>;
  /** Prints text between questions, if there is a user to read it. */
  say(text: string): void;
  close(): void;
}

export function assumedPrompt(): Prompt {
  return {
    assumes: true,
    ask: async (_, fallback) => fallback,
    confirm: async (_, fallback) => fallback,
    hidden: async () => '',
    say: () => undefined,
    close: () => undefined,
  };
}

export function terminalPrompt(): Prompt {
  let muted = false;
  const reader = createInterface({ input: process.stdin, output: process.stderr, historySize: 0 });
  const lines: Interface & { _writeToOutput?: (text: string) => void } = reader;
  const write = lines._writeToOutput?.bind(reader);
  // readline offers no other way to hide input.
  lines._writeToOutput = (text) => (muted ? undefined : write?.(text));
  let give: ((reason: Failure) => void) | null = null;
  const end = (): void => give?.(new Failure(EXIT.interrupted, '\nstopped: nothing was written'));
  // The terminal is in raw mode, so Ctrl-C between questions sends no signal by itself.
  reader.on('SIGINT', () => (give === null ? process.kill(process.pid, 'SIGINT') : end()));
  reader.on('close', end);
  const line = (question: string): Promise<string> =>
    new Promise((resolve, reject) => {
      give = reject;
      reader.question(question, (answer) => {
        give = null;
        resolve(answer.trim());
      });
    });
  const confirm = async (question: string, fallback: boolean): Promise<boolean> => {
    for (;;) {
      const answer = (await line(`${question} [${fallback ? 'Y/n' : 'y/N'}] `)).toLowerCase();
      if (answer === '') return fallback;
      if (answer === 'y' || answer === 'yes') return true;
      if (answer === 'n' || answer === 'no') return false;
      note('  y or n, please');
    }
  };
  return {
    assumes: false,
    ask: async (question, fallback) =>
      (await line(`${question}${fallback === '' ? '' : ` [${fallback}]`}: `)) || fallback,
    confirm,
    async hidden(question) {
      const answer = line(`${question}: `);
      muted = true;
      try {
        return await answer;
      } finally {
        muted = false;
        note('');
      }
    },
    say: note,
    close: () => {
      give = null;
      reader.close();
    },
  };
}

export interface InitFlags {
  readonly url?: string;
  readonly urlEnv?: string;
  readonly urlFile?: string;
  readonly schemas?: readonly string[];
  readonly tables?: string;
  readonly key: readonly string[];
  readonly mask?: string;
  readonly clear?: string;
  readonly rows?: string;
  readonly others?: 'whole' | 'hidden';
  readonly tenant?: string;
  readonly role?: string;
  readonly subject?: string;
  readonly issuerKey?: string;
  readonly createRole?: string;
  readonly bi?: boolean;
  readonly rowSecurity?: true;
  readonly yes?: true;
  readonly force?: true;
  readonly json?: true;
}

export const DEFAULT_URL_ENV = 'DATABASE_URL';
