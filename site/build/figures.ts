/** Figures of `bench/RESULTS.md`. Nothing that the documentation shows was measured elsewhere. */

/** One figure. */
export interface Figure {
  readonly median: number;
  readonly unit: string;
  /** Product that it is compared with, in words: `PgBouncer 1.18.0, transaction mode`; null where it is compared with none. */
  readonly peer: string | null;
  /** The peer's number. NaN where there is none. */
  readonly against: number;
  readonly n: number;
}

export interface Results {
  /** The cells of each line of a table in section `name`, or of all tables. @throws where there is no such section */
  rows(name?: string | null): readonly (readonly string[])[];
  /** @throws where no bench has written it: what a page says must have been measured */
  figure(id: string): Figure;
  /** The line below a section's heading: its day, its machine, and what was wrong with the run. */
  made(name: string): string;
}

/** Reads the text of `bench/RESULTS.md`. */
export function resultsOf(text: string): Results {
  const rows = (name: string | null = null): readonly (readonly string[])[] =>
    tableRows(name === null ? text : sectionOf(text, name));
  return Object.freeze({
    rows,
    figure(id: string): Figure {
      const row = rows().find((cells) => cells[0] === id);
      if (row === undefined) throw new Error(`bench/RESULTS.md has no figure ${id}`);
      const [, median = '', unit = '', , said = '', , n = ''] = row;
      const [, peer = null, against] = /^(.*): ([\d.]+)$/.exec(said) ?? [];
      return { median: Number(median), unit, peer, against: Number(against ?? Number.NaN), n: Number(n) };
    },
    made(name: string): string {
      const line = sectionOf(text, name)
        .split('\n')
        .find((l) => /^\d{4}-\d{2}-\d{2}, /.test(l));
      if (line === undefined) throw new Error(`bench/RESULTS.md does not say when ${name} was measured`);
      return line;
    },
  });
}

function sectionOf(text: string, name: string): string {
  const section = text.split(`<!-- ${name} -->`)[1]?.split(`<!-- /${name} -->`)[0];
  if (section === undefined) throw new Error(`bench/RESULTS.md has no section ${name}`);
  return section;
}

function tableRows(text: string): readonly (readonly string[])[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.slice(2, -2).split(' | '));
}
