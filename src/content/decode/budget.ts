import { createHash, randomUUID } from 'node:crypto';
import { appendFile, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Serial } from '../../base/serial.js';

/** Limits how many passages a subject may send to a model per day. If usage cannot be counted, it grants nothing. */
export interface PassageBudget {
  /** Takes up to `wanted` passages and returns how many were granted. */
  take(subject: string, wanted: number): Promise<number>;
  giveBack(subject: string, unused: number): Promise<void>;
}

interface BudgetWaiter {
  readonly wanted: number;
  granted: number | null;
}

/**
 * Counts passages by subject and UTC day in one file per day, which all server processes append to and read. Each line
 * is granted at most the part of the limit that the preceding lines have left, so all processes arrive at the same
 * count, even after a restart. Subjects are stored as hashes.
 */
export class DailyBudget implements PassageBudget {
  readonly #dir: string;
  readonly #perDay: number;
  readonly #onFault: (cause: unknown) => void;
  readonly #serial = new Serial();
  readonly #waiting = new Map<string, BudgetWaiter>();
  #day = '';
  #read = 0;
  #used = new Map<string, number>();

  /** @param onFault called with the reason why the file cannot be read or written */
  constructor(dir: string, perDay: number, onFault: (cause: unknown) => void) {
    this.#dir = dir;
    this.#perDay = perDay;
    this.#onFault = onFault;
  }

  take(subject: string, wanted: number): Promise<number> {
    return this.#serial
      .run(() => this.#granted(keyOf(subject), wanted))
      .catch((cause: unknown) => {
        this.#onFault(cause);
        return 0;
      });
  }

  /** Credits unused passages to the subject. If the file cannot be written, the subject cannot use them that day. */
  giveBack(subject: string, unused: number): Promise<void> {
    if (unused <= 0) return Promise.resolve();
    const given = this.#serial.run(() => this.#append(`${keyOf(subject)} ${-unused} -\n`));
    return given.catch((cause: unknown) => this.#onFault(cause));
  }

  async #granted(key: string, wanted: number): Promise<number> {
    await this.#catchUp();
    if (wanted < 1 || this.#left(key) === 0) return 0;
    const line = randomUUID();
    const own: BudgetWaiter = { wanted, granted: null };
    this.#waiting.set(line, own);
    try {
      await this.#append(`${key} ${wanted} ${line}\n`);
      await this.#catchUp();
    } finally {
      this.#waiting.delete(line);
    }
    const granted = own.granted ?? 0;
    if (granted < wanted) await this.#append(`${key} ${granted - wanted} -\n`);
    return granted;
  }

  #left(key: string): number {
    return Math.max(0, this.#perDay - (this.#used.get(key) ?? 0));
  }

  #append(line: string): Promise<void> {
    return appendFile(join(this.#dir, this.#day), line, { mode: 0o600 });
  }

  async #catchUp(): Promise<void> {
    await this.#begin(new Date().toISOString().slice(0, 10));
    const file = await open(join(this.#dir, this.#day), 'a+', 0o600);
    try {
      const { size } = await file.stat();
      const bytes = Buffer.alloc(size - this.#read);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, this.#read);
      const end = bytes.subarray(0, bytesRead).lastIndexOf(0x0a) + 1;
      this.#read += end;
      for (const line of bytes.subarray(0, end).toString('utf8').split('\n')) this.#count(line);
    } finally {
      await file.close();
    }
  }

  #count(line: string): void {
    const [key = '', amount = '', name = ''] = line.split(' ');
    const passages = Number(amount);
    if (key === '' || !Number.isInteger(passages)) return;
    const own = this.#waiting.get(name);
    if (own !== undefined) own.granted = Math.min(own.wanted, this.#left(key));
    this.#used.set(key, Math.max(0, (this.#used.get(key) ?? 0) + passages));
  }

  async #begin(day: string): Promise<void> {
    if (day === this.#day) return;
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#dir))
      if (name < day) await rm(join(this.#dir, name), { force: true });
    this.#day = day;
    this.#read = 0;
    this.#used = new Map();
  }
}

function keyOf(subject: string): string {
  return createHash('sha256').update(subject).digest('hex').slice(0, 32);
}
