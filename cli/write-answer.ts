import {
  type AnswerFormat,
  answerNotes,
  formatAnswer,
  formatAnswerCsv,
  formatMarkdown,
  parseAnswer,
} from './answer.js';
import type { QueryCall } from './answer-streams.js';
import type { ChartKind } from './chart/index.js';
import { type AnswerBody, type AnswerReceipt, postQuery } from './client.js';
import { note, print, terminalWidth } from './output.js';
import { bodyOf, unreadable } from './reply.js';

export interface OutputOptions {
  readonly format: AnswerFormat;
  readonly chart: ChartKind | 'auto' | null;
  readonly ascii: boolean;
  readonly exact: boolean;
}

type WrittenAnswer = Pick<AnswerBody, 'truncated' | 'receipt'>;

/** Runs a query and writes the answer; `say` prints messages for the user. */
export type AnswerWriter = (asking: QueryCall, say: (text: string) => void) => Promise<WrittenAnswer>;

/** Loads the writer for a format. A writer used repeatedly prints a CSV header only once. */
export async function loadWriter(writing: OutputOptions): Promise<AnswerWriter> {
  switch (writing.format) {
    case 'arrow':
      return (await import('./answer-streams.js')).printArrow;
    case 'parquet':
      return (await import('./parquet.js')).printParquet;
    case 'ndjson':
      return (await import('./answer-streams.js')).printNdjson;
    case 'json':
      return writeJson;
    case 'csv':
      return csvWriter(writing.exact);
    case 'markdown':
      return textWriter(formatMarkdown);
    case 'table': {
      const { chart, ascii } = writing;
      if (chart === null) return textWriter((answer) => formatAnswer(answer, terminalWidth()));
      const { formatChart, styleOf } = await import('./chart/index.js');
      const kind = chart === 'auto' ? null : chart;
      return textWriter((answer) => formatChart(answer, kind, styleOf(process.stdout, process.env, ascii)));
    }
  }
}

/** Prints the response unchanged, even if it is a refusal. @throws Failure for a refusal */
async function writeJson({ url, token, body, text, ...wishes }: QueryCall): Promise<WrittenAnswer> {
  const answer = bodyOf(await postQuery(url, token, body, wishes), true, text);
  const receipt = answer['receipt'] as AnswerReceipt | undefined; // the server's own format
  return { truncated: answer['truncated'] === true, ...(receipt !== undefined && { receipt }) };
}

function textWriter(textOf: (answer: AnswerBody) => string): AnswerWriter {
  return async (asking, say) => {
    const answer = await fetchAnswer(asking);
    say(textOf(answer));
    return answer;
  };
}

function csvWriter(exact: boolean): AnswerWriter {
  let head: string | null = null;
  let notes = '';
  return async (asking) => {
    const answer = await fetchAnswer(asking);
    const text = formatAnswerCsv(answer, exact);
    const own = formatAnswerCsv({ ...answer, rows: [] }, exact);
    const rows = text.slice(own.length).replace(/^\r\n/, '');
    if (own !== head) print(text);
    else if (rows !== '') print(rows);
    head = own;
    const said = answerNotes(answer).join('\n');
    if (said !== '' && said !== notes) note(said);
    notes = said;
    return answer;
  };
}

async function fetchAnswer({ url, token, body, text, ...wishes }: QueryCall): Promise<AnswerBody> {
  const answer = parseAnswer(bodyOf(await postQuery(url, token, body, wishes), false, text));
  if (answer === null) throw unreadable();
  return answer;
}
