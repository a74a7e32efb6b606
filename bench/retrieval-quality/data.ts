import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseCsv } from './csv.js';

/** Folder of third-party data sets, which are read in place and never copied. */
const DATA = process.env['OSL_SHARED_DATA'] ?? join('..', 'shared', 'data');

/** One line that names missing data; null if the data exists. */
export function missingData(folder: 'banking77' | 'chunk-spans'): string | null {
  const path = join(DATA, folder);
  return existsSync(path) ? null : `no test data in ${path}: set OSL_SHARED_DATA`;
}

interface GoldSpan {
  /** Offset in code points. */
  readonly start: number;
  readonly end: number;
}

export interface SpanQuestion {
  readonly text: string;
  readonly corpus: string;
  readonly gold: readonly GoldSpan[];
}

/** `chunk-spans`: corpora by name, and questions with the spans that answer them. */
export function chunkSpanData(): {
  readonly corpora: ReadonlyMap<string, string>;
  readonly questions: readonly SpanQuestion[];
} {
  const folder = join(DATA, 'chunk-spans');
  const questions = parseCsv(readFileSync(join(folder, 'questions.csv'), 'utf8')).map((row): SpanQuestion => {
    const references: { start_index: number; end_index: number }[] = JSON.parse(
      row.get('references') ?? '[]',
    );
    return {
      text: row.get('question') ?? '',
      corpus: row.get('corpus_id') ?? '',
      gold: references.map((r) => ({ start: r.start_index, end: r.end_index })),
    };
  });
  const names = [...new Set(questions.map((q) => q.corpus))].sort();
  const corpora = new Map(
    names.map((n) => [n, readFileSync(join(folder, 'corpora', `${n}.md`), 'utf8')] as const),
  );
  return { corpora, questions };
}

export interface Intent {
  readonly text: string;
  readonly label: string;
}

/** `banking77`: queries with their intents, for training and testing. */
export function bankingData(): {
  readonly train: readonly Intent[];
  readonly test: readonly Intent[];
  readonly labels: readonly string[];
} {
  const read = (file: string): string => readFileSync(join(DATA, 'banking77', file), 'utf8');
  const intents = (file: string): Intent[] =>
    parseCsv(read(file)).map((row) => ({ text: row.get('text') ?? '', label: row.get('category') ?? '' }));
  return {
    train: intents('train.csv'),
    test: intents('test.csv'),
    labels: JSON.parse(read('categories.json')),
  };
}
