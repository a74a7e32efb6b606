import { directorySource, prove, readRecords, searchRecords } from '../../audit/index.js';
import { connectTable, recordsAfter, searchTable, tableSource, writersIn } from '../../audit/table/index.js';

/**
 * Run by the bench: performs one operation on a log and prints the time taken. Arguments: `files` and a directory, or
 * `table` and a URL; then the operation, and the position in the log of the record to find, as a fraction.
 */
const [kind = '', place = '', what = '', part = '0'] = process.argv.slice(2);

const MINUTE_MS = 60_000;

interface Asked {
  /** Id of the request whose record has this seq. */
  requestAt(seq: number): Promise<string>;
  search(filter: { readonly requestId?: string; readonly subject?: string }): Promise<number>;
  prove(requestId: string): Promise<number>;
  readonly records: number;
}

async function counted(records: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of records) count += 1;
  return count;
}

async function files(dir: string): Promise<Asked> {
  const [last] = (await directorySource(dir).latest()).toString().split('\n').slice(1);
  return {
    records: Number(last),
    requestAt: async (seq) => {
      for await (const { request_id } of readRecords(dir, { from: seq })) return request_id;
      throw new Error('the log is shorter');
    },
    search: (filter) => counted(searchRecords(dir, filter)),
    prove: async (requestId) => (await prove(dir, requestId)).length,
  };
}

async function table(url: string): Promise<Asked> {
  const session = await connectTable(() => url, 60 * MINUTE_MS);
  const [writer = ''] = await writersIn(session);
  const source = tableSource(session, writer);
  const [last] = (await source.latest()).toString().split('\n').slice(1);
  return {
    records: Number(last),
    requestAt: async (seq) => (await recordsAfter(session, writer, seq))[0]?.request_id ?? '',
    search: (filter) => counted(searchTable(session, filter)),
    prove: async (requestId) => (await prove(source, requestId)).length,
  };
}

const asked = kind === 'files' ? await files(place) : await table(place);
const id = await asked.requestAt(Math.floor(Number(part) * (asked.records - 10)) + 2);
const started = performance.now();
const before = process.cpuUsage();
const found =
  what === 'subject'
    ? await asked.search({ subject: 'nobody' })
    : what === 'request'
      ? await asked.search({ requestId: id })
      : await asked.prove(id);
const { user, system } = process.cpuUsage(before);
const seconds = (performance.now() - started) / 1_000;
process.stdout.write(`${JSON.stringify({ seconds, cpu: (user + system) / 1e6, found })}\n`);
process.exit(); // with an open session
