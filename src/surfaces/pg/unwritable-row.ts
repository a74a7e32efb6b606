import { type Awaitable, type RowWriter, WireError } from '../../../wire/index.js';
import { ForeignFault } from '../../ask/index.js';

/** SQLSTATE of a character that the client's encoding does not have. */
const UNTRANSLATABLE = '22P05';

/** A row cannot be said in the client's encoding: it hears so, and the question ends as one that failed. */
export class UnwritableRow extends ForeignFault {
  override readonly name = 'UnwritableRow';
  readonly said: WireError;

  constructor(said: WireError) {
    super(said.message);
    this.said = said;
  }

  get code(): string {
    return this.said.sqlstate;
  }
}

/** Where the spine writes rows to. @throws UnwritableRow, and what `rows` throws beside that */
export function rowSink(rows: RowWriter): { write(messages: Uint8Array): Awaitable<void> } {
  return {
    write: (messages) => {
      const written = rows.write(messages);
      return written instanceof Promise ? written.catch(rethrown) : written;
    },
  };
}

function rethrown(cause: unknown): never {
  throw cause instanceof WireError && cause.sqlstate === UNTRANSLATABLE ? new UnwritableRow(cause) : cause;
}
