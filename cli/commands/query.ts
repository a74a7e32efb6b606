import { rmSync, writeFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import {
  type AnswerFormat,
  answerNotes,
  FORMATS,
  formatAnswer,
  formatAnswerCsv,
  formatMarkdown,
  parseAnswer,
  printArrow,
  printNdjson,
  type QueryCall,
} from '../answer.js';
import { addQueryOptions, type QueryTextFlags, queryBody, queryText, serverAccess } from '../ask.js';
import type { ChartKind } from '../chart/index.js';
import { type AnswerBody, postQuery, type SaltedReceipt, serverUrl } from '../client.js';
import { EXIT, failure, usage } from '../exit.js';
import { settingsOf, wholeNumber } from '../flags.js';
import { CLEAR, note, print, terminalWidth } from '../output.js';
import { bodyOf, unreadable } from '../reply.js';

interface QueryFlags extends QueryTextFlags {
  readonly format: AnswerFormat;
  readonly chart?: string | true;
  readonly ascii?: true;
  readonly exact?: true;
  readonly watch?: string | true;
  readonly times?: number;
  readonly receipt?: string;
  readonly approvalReason?: string;
}

const KINDS: readonly ChartKind[] = ['bars', 'line', 'scatter'];
const EVERY_SECONDS = 2;

const HELP = `
Without --token and --subject: OSL_TOKEN, OSL_SUBJECT, the only subject of the policy, or in the demo user:analyst.

--chart draws a line where the answer has times, bars where it has words, a scatter where it has numbers alone; what it
cannot draw is a table. Tables, Markdown and charts show figures as their metrics say; the other formats have values.
--watch waits while the server has too much to do or is away, gets new tokens in time, and ends with Ctrl-C.

Exit status: 0 answered in full, 1 refused or failed, 2 usage or configuration, 3 no server answers,
8 truncated: what was written is right, and not all of it. It is the same for each --format.

Examples:
  $ osl query --subject user:analyst "select license, count(*) from osl.entities.package group by license"
  $ osl query --token "$(osl token --subject user:auditor)" --json "select name, email from osl.entities.person"
  $ osl query --subject user:analyst --sql "select name, email from supply.person limit 3"
  $ osl query --subject user:analyst --metrics '{"metrics": ["install_bytes"], "group_by": ["package__license_class"]}'
  $ osl query --subject user:analyst --chart "select license, count(*) from package group by license"
  $ osl query --subject user:analyst --watch 5 --chart "select license, count(*) from package group by license"
  $ osl query --subject user:analyst --format parquet "select name, license from package" > packages.parquet
  $ echo "select 1" | osl query --subject user:analyst -`;

export function addQuery(program: Command): void {
  const command = program
    .command('query')
    .argument('[text]', 'the question; - or nothing reads standard input');
  addQueryOptions(command)
    .addOption(new Option('--format <format>', 'how the answer is written').choices(FORMATS).default('table'))
    .addOption(
      new Option('--json', "the server's answer as it is; the same as --format json").conflicts('format'),
    )
    .addOption(
      new Option(
        '--chart [kind]',
        'draw it: bars, line or scatter; without a kind, as its shape asks for',
      ).conflicts(['json', 'format']),
    )
    .option('--ascii', 'draw with ASCII; also where the locale is not UTF-8')
    .option(
      '--exact',
      'with --format csv: values as they are, also what a spreadsheet would calculate (=, +, -, @)',
    )
    .option('--watch [seconds]', 'ask again and again, every so often (2); redraws a terminal')
    .option('--approval-reason <text>', 'request an approval, for this reason, if the query needs one')
    .option('-n, --times <count>', 'with --watch: end after so many answers', wholeNumber(1, 1_000_000))
    .addOption(
      new Option('--receipt <file>', 'write a receipt of the answer, and its salt to FILE.salt').conflicts(
        'watch',
      ),
    )
    .addHelpText('after', HELP)
    .action(runQuery);
}

async function runQuery(given: string | undefined, flags: QueryFlags): Promise<void> {
  const { argument, writing, everySeconds } = readFlags(given, flags);
  const text = await queryText(argument);
  const body = queryBody(flags, text);
  const ask = await loadWriter(writing);
  if (everySeconds !== null) {
    await watched({ body, text }, everySeconds, flags, writing, ask);
    return;
  }
  const { url, token } = await serverAccess(flags);
  const { receipt: file, approvalReason } = flags;
  const answer = await ask({ url, token, body, text, receipt: file !== undefined, approvalReason }, print);
  if (file !== undefined) keepReceipt(file, answer.receipt);
  endWith(answer);
}

interface QueryArguments {
  readonly argument: string | undefined;
  readonly writing: OutputOptions;
  readonly everySeconds: number | null;
}

function readFlags(given: string | undefined, flags: QueryFlags): QueryArguments {
  let argument = given;
  const orQuestion = (word: string, fault: string): null => {
    if (argument !== undefined) throw usage(fault);
    argument = word;
    return null;
  };
  const format = flags.json ? 'json' : flags.format;
  const exact = flags.exact === true;
  if (exact && format !== 'csv') throw usage('--exact goes with --format csv');
  if (exact && process.stdout.isTTY)
    throw usage('--exact writes what could steer a terminal: send it to a file or a pipe');
  let chart: OutputOptions['chart'] = null;
  if (flags.chart !== undefined) {
    const { chart: word } = flags;
    chart = 'auto';
    if (word !== true)
      chart =
        KINDS.find((kind) => kind === word) ??
        orQuestion(word, `--chart is one of ${KINDS.join(', ')}, not \`${word}\``) ??
        'auto';
  }
  let everySeconds: number | null = null;
  if (flags.watch !== undefined) {
    const { watch: word } = flags;
    const fault = `--watch takes whole seconds from 1 to 86400, not \`${word}\``;
    if (word === true) everySeconds = EVERY_SECONDS;
    else if (/^\d{1,5}$/.test(word)) everySeconds = Number(word);
    else everySeconds = orQuestion(word, fault) ?? EVERY_SECONDS;
    if (everySeconds < 1 || everySeconds > 86_400) throw usage(fault);
    if (format === 'arrow' || format === 'parquet')
      throw usage(`--watch asks again and again, and --format ${format} is one file`);
  } else if (flags.times !== undefined) throw usage('--times goes with --watch');
  return { argument, writing: { format, chart, ascii: flags.ascii === true, exact }, everySeconds };
}

/** Sets the exit status, which is the only way for a script to detect truncation. */
function endWith({ truncated }: { readonly truncated: boolean }): void {
  process.exitCode = truncated ? EXIT.truncated : EXIT.ok;
}

async function watched(
  question: Pick<Parameters<AnswerWriter>[0], 'body' | 'text'>,
  everySeconds: number,
  flags: QueryFlags,
  { format }: OutputOptions,
  ask: AnswerWriter,
): Promise<void> {
  const [{ watch }, { freshToken }] = await Promise.all([import('../watch.js'), import('../caller.js')]);
  const { approvalReason } = flags;
  const url = serverUrl(flags.server, settingsOf(flags));
  const tokens = await freshToken(flags);
  const redraws = process.stdout.isTTY === true && format === 'table';
  const say = (text: string): void => {
    const at = `${new Date().toISOString().slice(0, 19)}Z`;
    if (redraws) print(`${CLEAR}${at}, every ${everySeconds} s; Ctrl-C ends it\n${text}`);
    else print(`${at}${format === 'markdown' ? '\n' : ''}\n${text}\n`);
  };
  await watch({
    everySeconds,
    times: flags.times ?? null,
    tokens,
    ask: async (token, signal) =>
      endWith(await ask({ url, token, signal, approvalReason, ...question }, say)),
  });
}

interface OutputOptions {
  readonly format: AnswerFormat;
  readonly chart: ChartKind | 'auto' | null;
  readonly ascii: boolean;
  readonly exact: boolean;
}

type WrittenAnswer = Pick<AnswerBody, 'truncated' | 'receipt'>;

/** Runs a query and writes the answer. Table and Markdown output goes through `say`, which prints a text. */
type AnswerWriter = (asking: QueryCall, say: (text: string) => void) => Promise<WrittenAnswer>;

/** Loads the writer for a format. A writer used repeatedly prints a CSV header only once. */
async function loadWriter(writing: OutputOptions): Promise<AnswerWriter> {
  switch (writing.format) {
    case 'arrow':
      return printArrow;
    case 'parquet':
      return (await import('../parquet.js')).printParquet;
    case 'ndjson':
      return printNdjson;
    case 'json':
      return writeJson;
    case 'csv':
      return csvWriter(writing.exact);
    case 'markdown':
      return textWriter(formatMarkdown);
    case 'table': {
      const { chart, ascii } = writing;
      if (chart === null) return textWriter((answer) => formatAnswer(answer, terminalWidth()));
      const { formatChart, styleOf } = await import('../chart/index.js');
      const kind = chart === 'auto' ? null : chart;
      return textWriter((answer) => formatChart(answer, kind, styleOf(process.stdout, process.env, ascii)));
    }
  }
}

/** Prints the response unchanged, even if it is a refusal. @throws Failure for a refusal */
async function writeJson({ url, token, body, text, ...wishes }: QueryCall): Promise<WrittenAnswer> {
  const answer = bodyOf(await postQuery(url, token, body, wishes), true, text);
  const receipt = answer['receipt'] as SaltedReceipt | undefined; // the form in which the server sends it
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
    // `print` adds a line feed: with it the last line ends as the others do.
    if (own !== head) print(`${text}\r`);
    else if (rows !== '') print(`${rows}\r`);
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

/** Writes a receipt, and its salt to a file readable only by the owner. @throws Failure without a receipt */
function keepReceipt(file: string, receipt: SaltedReceipt | undefined): void {
  if (receipt === undefined)
    throw failure('the server answered without a receipt: it may be older than this osl');
  writeFileSync(file, receipt.proof);
  rmSync(`${file}.salt`, { force: true }); // writing to an existing file would keep its mode
  writeFileSync(`${file}.salt`, `${receipt.salt}\n`, { mode: 0o600 });
}
