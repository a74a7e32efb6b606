import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';

/** One figure. A ratio above 1 always means that we are better. */
export interface Measure {
  readonly id: string;
  readonly value: number;
  readonly unit: string;
  /** Baseline of the comparison, or null. */
  readonly against: string | null;
  readonly ratio: number | null;
  /** Minimum and maximum of the runs whose median is `value`. */
  readonly spread: readonly [number, number];
  readonly n: number;
}

/** Result of a bench: measures, and additional tables. */
export interface Findings {
  readonly measures: readonly Measure[];
  /** Tables to print; each also becomes a section of RESULTS.md. */
  readonly tables: readonly Table[];
}

export interface Table {
  /** Name of its section; unique. */
  readonly name: string;
  /** Description of the comparison in one or two sentences. */
  readonly about: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Report {
  readonly name: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryGiB: number };
  readonly versions: Readonly<Record<string, string>>;
  readonly date: string;
  readonly measures: readonly Measure[];
}

export function reportOf(name: string, measures: readonly Measure[]): Report {
  const [cpu] = cpus();
  return {
    name,
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
    },
    versions: { node: process.version, osl: packageVersion(), commit: commit() },
    date: new Date().toISOString().slice(0, 10),
    measures,
  };
}

function packageVersion(): string {
  const parsed: unknown = JSON.parse(readFileSync('package.json', 'utf8'));
  return typeof parsed === 'object' && parsed !== null && 'version' in parsed
    ? String(parsed.version)
    : 'unknown';
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    return 'no git';
  }
}

/**
 * Compares ours with theirs by round: `value` is our median, `ratio` the median of the rounds' ratios, and `spread` the
 * range of our values. Rounds without a pair do not count.
 */
export function paired(
  id: string,
  unit: string,
  better: 'more' | 'less',
  ours: readonly number[],
  theirs: readonly number[],
  against: string,
): Measure {
  const ratios = ours.slice(0, theirs.length).map((mine, i) => {
    const their = theirs[i] ?? Number.NaN;
    return better === 'more' ? mine / their : their / mine;
  });
  return measure(id, unit, ours, `${against}: ${round(median(theirs))}`, median(ratios));
}

/** Measure with the median and spread of `values`. */
export function measure(
  id: string,
  unit: string,
  values: readonly number[],
  against: string | null = null,
  ratio: number | null = null,
): Measure {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    id,
    value: round(quantile(sorted, 0.5)),
    unit,
    against,
    ratio: ratio === null ? null : round(ratio),
    spread: [round(sorted[0] ?? Number.NaN), round(sorted.at(-1) ?? Number.NaN)],
    n: values.length,
  };
}

/** Quantile `q` of `sorted`, which must be ascending. */
export function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

export function tableOf(report: Report): string {
  const rows = report.measures.map((m) => [
    m.id,
    String(m.value),
    m.unit,
    m.ratio === null ? '' : `${m.ratio}×`,
    m.against ?? '',
    `${m.spread[0]} – ${m.spread[1]}`,
    String(m.n),
  ]);
  const head = ['measure', 'median', 'unit', 'ratio', 'against', 'spread', 'n'];
  return markdown(head, rows);
}

export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((r) => `| ${r.join(' | ')} |`).join('\n');
}
