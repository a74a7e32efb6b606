export interface FileProblem {
  /** Path of the member: `panels[0].title`; empty for the whole file. */
  readonly at: string;
  readonly text: string;
}

/** Checks members of a file and collects all that is wrong. Returns a valid placeholder for an invalid member. */
export class FileReader {
  readonly problems: FileProblem[] = [];

  fault(at: string, text: string): void {
    this.problems.push({ at, text });
  }

  object(value: unknown, at: string, members: readonly string[]): Readonly<Record<string, unknown>> {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.fault(at, 'must be an object');
      return {};
    }
    for (const name of Object.keys(value)) {
      if (!members.includes(name)) this.fault(at === '' ? name : `${at}.${name}`, 'is unknown');
    }
    return { ...value };
  }

  list<T>(value: unknown, at: string, most: number, read: (one: unknown, at: string) => T): readonly T[] {
    if (!Array.isArray(value)) {
      this.fault(at, 'must be a list');
      return [];
    }
    if (value.length > most) this.fault(at, `must have at most ${most} elements`);
    return value.slice(0, most).map((one: unknown, i) => read(one, `${at}[${i}]`));
  }

  text(value: unknown, at: string, longest: number): string {
    if (typeof value !== 'string' || value.trim() === '') this.fault(at, 'must be a text that is not empty');
    else if (value.length > longest) this.fault(at, `must have at most ${longest} characters`);
    else return value;
    return '';
  }

  word<T extends string>(value: unknown, at: string, words: readonly [T, ...T[]] | readonly T[]): T {
    const known = words.find((word) => word === value);
    if (known === undefined) this.fault(at, `must be one of: ${words.join(', ')}`);
    return known ?? (words[0] as T); // no list of words is empty
  }

  count(value: unknown, at: string, most: number): number {
    if (typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= most) return value;
    this.fault(at, `must be a whole number from 1 to ${most.toLocaleString('en')}`);
    return 1;
  }

  /** A day, or null if the member is absent. */
  day(value: unknown, at: string): string | null {
    if (value === undefined) return null;
    if (typeof value === 'string' && isDay(value)) return value;
    this.fault(at, 'must be a day, such as 2026-01-31');
    return null;
  }
}

/** True for a day of the calendar, in the form `2026-01-31`. */
function isDay(text: string): boolean {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}
