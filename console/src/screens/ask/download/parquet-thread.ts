import type { AnswerColumn } from '../../../api/ask.js';
import type { JsonValue } from '../../../parts/rows/row-store.js';
import { answerWith } from '../../../parts/thread/thread-answers.js';
import { ParquetFile } from './parquet-file.js';

/** Requests to the worker thread that writes one file. */
export type ParquetQuestions = {
  readonly begin: {
    readonly ask: { readonly columns: readonly AnswerColumn[]; readonly trailer: object };
    readonly answer: undefined;
  };
  /** Rows, column by column. */
  readonly add: { readonly ask: readonly (readonly JsonValue[])[]; readonly answer: undefined };
  readonly end: { readonly ask: null; readonly answer: Blob };
};

let file = new ParquetFile([], {});

answerWith<ParquetQuestions>({
  begin: ({ columns, trailer }) => {
    file = new ParquetFile(columns, trailer);
    return undefined;
  },
  add: (values) => {
    file.add(values);
    return undefined;
  },
  end: () => file.end(),
});
