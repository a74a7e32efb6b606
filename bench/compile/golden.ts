import { readFileSync } from 'node:fs';
import { applyGrammar, compile, emit, QueryError } from 'osl-compiler';
import { parseCases } from '../../test/proof/golden/cases.js';
import { CALLERS, CATALOG } from '../../test/proof/golden/catalog.js';
import { CASES, caseFiles } from '../../test/proof/golden/files.js';
import { type Measure, median, paired } from '../report.js';

/** Compiles one text, or only parses it. */
type Timed = (text: string) => unknown;

/**
 * Median time in µs over the golden queries that are allowed, each compiled cold and parsed alone in alternation, with
 * a different comment appended each time.
 */
export function goldenMeasures(rounds: number): readonly Measure[] {
  const questions = answered();
  const turns = Array.from({ length: 2 * rounds }, (_, round) => {
    const times = questions.map(({ query, cold }) => ({
      cold: timed(cold, `${query} -- ${round}`),
      parser: timed(applyGrammar, `${query} -- ${round}`),
    }));
    return { cold: median(times.map((t) => t.cold)), parser: median(times.map((t) => t.parser)) };
  }).slice(rounds); // the first half is warm-up
  const [cold, parser] = [turns.map((t) => t.cold), turns.map((t) => t.parser)];
  return [
    paired(
      'compile.golden_vs_parser',
      'µs',
      'less',
      cold,
      parser,
      `the parser alone, of ${questions.length} golden questions`,
    ),
  ];
}

function answered(): readonly { readonly query: string; readonly cold: Timed }[] {
  const texts = caseFiles().map((file) => readFileSync(new URL(file, CASES), 'utf8'));
  return texts.flatMap(parseCases).flatMap(({ query, caller, world, off }) => {
    const access = CALLERS.get(caller)?.access;
    if (access === undefined || off.length > 0 || query.startsWith('{')) return [];
    const cold: Timed = (text) => emit(compile(text, CATALOG, access, { world }));
    return isAnswered(() => cold(query)) ? [{ query, cold }] : [];
  });
}

function isAnswered(ask: () => unknown): boolean {
  try {
    ask();
    return true;
  } catch (error) {
    if (error instanceof QueryError) return false;
    throw error;
  }
}

function timed(work: Timed, text: string): number {
  const start = process.hrtime.bigint();
  work(text);
  return Number(process.hrtime.bigint() - start) / 1_000;
}
