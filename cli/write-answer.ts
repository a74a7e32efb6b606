import { type AnswerFormat, answerOf, formatAnswer, formatAnswerCsv, notesOn } from './answer.js';
import type { ChartKind } from './chart/index.js';
import { type AnswerBody, postQuery } from './client.js';
import type { QueryCall } from './ndjson.js';
import { note, print, terminalWidth } from './output.js';
import { bodyOf, unreadable } from './reply.js';

/** What an answer is written as. */
export interface OutputOptions {
  readonly format: AnswerFormat;
  /** In the place of a table: `auto` for the chart that the shape of the answer asks for. */
  readonly chart: ChartKind | 'auto' | null;
  /** No character beyond ASCII is drawn with. */
  readonly ascii: boolean;
  /** CSV has values that a spreadsheet would calculate, or a terminal obey, as they are. */
  readonly exact: boolean;
}

type Truncation = Pick<AnswerBody, 'truncated'>;

/** Asks once and writes the answer; of answers that are text for people, `say` writes them. */
export type AnswerWriter = (asking: QueryCall, say: (text: string) => void) => Promise<Truncation>;

/** What asks, and writes the answer as told; loads what that takes. One that asks again writes a CSV header once. */
export async function loadWriter(writing: OutputOptions): Promise<AnswerWriter> {
  switch (writing.format) {
    case 'arrow':
      return (await import('./arrow.js')).printArrow;
    case 'parquet':
      return (await import('./parquet/print.js')).printParquet;
    case 'ndjson':
      return (await import('./ndjson.js')).printNdjson;
    case 'json':
      return askedJson;
    case 'csv':
      return askedCsv(writing.exact);
    case 'markdown': {
      const { formatMarkdown } = await import('./markdown.js');
      return asked(formatMarkdown);
    }
    case 'table': {
      const { chart, ascii } = writing;
      if (chart === null) return asked((answer) => formatAnswer(answer, terminalWidth()));
      const { formatChart, styleOf } = await import('./chart/index.js');
      const kind = chart === 'auto' ? null : chart;
      return asked((answer) => formatChart(answer, kind, styleOf(process.stdout, process.env, ascii)));
    }
  }
}

/** The server's own words. @throws Failure where it refuses: its words are printed then too */
async function askedJson({ url, token, body, text, signal }: QueryCall): Promise<Truncation> {
  const answer = bodyOf(await postQuery(url, token, body, signal), true, text);
  return { truncated: answer['truncated'] === true };
}

function asked(textOf: (answer: AnswerBody) => string): AnswerWriter {
  return async (asking, say) => {
    const answer = await answered(asking);
    say(textOf(answer));
    return answer;
  };
}

function askedCsv(exact: boolean): AnswerWriter {
  let head: string | null = null;
  let notes = '';
  return async (asking) => {
    const answer = await answered(asking);
    const text = formatAnswerCsv(answer, exact);
    const own = formatAnswerCsv({ ...answer, rows: [] }, exact);
    const rows = text.slice(own.length).replace(/^\r\n/, '');
    if (own !== head) print(text);
    else if (rows !== '') print(rows);
    head = own;
    const said = notesOn(answer).join('\n');
    if (said !== '' && said !== notes) note(said);
    notes = said;
    return answer;
  };
}

async function answered({ url, token, body, text, signal }: QueryCall): Promise<AnswerBody> {
  const answer = answerOf(bodyOf(await postQuery(url, token, body, signal), false, text));
  if (answer === null) throw unreadable();
  return answer;
}
