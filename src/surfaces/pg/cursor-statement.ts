import {
  error,
  type FormatCode,
  type Portal,
  type RowWriter,
  type WireNotice,
  type WireStatement,
} from '../../../wire/index.js';
import { writeRows } from './buffered-rows.js';
import { commandStatement, type StatementNode } from './command.js';
import { type Declaration, type Motion, rowCountOf } from './cursor.js';
import { planChanged } from './session-requests.js';
import type { SessionParts } from './session-state.js';

export type CursorCommand =
  | { readonly kind: 'declare'; readonly declaration: Declaration }
  | { readonly kind: 'fetch' | 'move'; readonly name: string; readonly motion: Motion }
  /** `name` is null for CLOSE ALL. */
  | { readonly kind: 'close'; readonly name: string | null };

const BINARY = 0x0001;
const SCROLL = 0x0002;
const HOLD = 0x0020;
/** Number of rows by which the Postgres parser represents ALL. */
const ALL = 2_147_483_647;

export function cursorCommandOf(node: StatementNode): CursorCommand | null {
  if ('DeclareCursorStmt' in node) {
    const { portalname: name = '', options = 0 } = node.DeclareCursorStmt;
    const declaration = {
      name,
      binary: (options & BINARY) !== 0,
      hold: (options & HOLD) !== 0,
      scroll: (options & SCROLL) !== 0,
    };
    return { kind: 'declare', declaration };
  }
  if ('ClosePortalStmt' in node) return { kind: 'close', name: node.ClosePortalStmt.portalname ?? null };
  if (!('FetchStmt' in node)) return null;
  const { direction, portalname: name = '', ismove = false } = node.FetchStmt;
  const howMany = Number(node.FetchStmt.howMany ?? 0);
  return { kind: ismove ? 'move' : 'fetch', name, motion: motionOf(directionOf(direction), howMany) };
}

/** With ABSOLUTE and RELATIVE, which do not accept ALL, the number that represents ALL is an ordinary position. */
function motionOf(direction: Motion['direction'], howMany: number): Motion {
  const passesRows = direction === 'forward' || direction === 'backward';
  return { direction, count: passesRows && howMany === ALL ? 'all' : howMany };
}

function directionOf(direction: string | undefined): Motion['direction'] {
  switch (direction) {
    case 'FETCH_BACKWARD':
      return 'backward';
    case 'FETCH_ABSOLUTE':
      return 'absolute';
    case 'FETCH_RELATIVE':
      return 'relative';
    default:
      return 'forward';
  }
}

/** Prepares a cursor statement; `prepareQuestion` prepares the query of a DECLARE. @throws WireError */
export async function cursorStatement(
  session: SessionParts,
  command: CursorCommand,
  text: string,
  prepareQuestion: () => Promise<WireStatement>,
): Promise<WireStatement> {
  switch (command.kind) {
    case 'declare':
      return declareStatement(session, command.declaration, text, await prepareQuestion());
    case 'fetch':
    case 'move':
      return fetchStatement(session, command);
    case 'close':
      return closeStatement(session, command.name);
    default: {
      const unknown: never = command;
      throw error('XX000', `unexpected command ${String(unknown)}`);
    }
  }
}

function declareStatement(
  { state, records, cursors }: SessionParts,
  declaration: Declaration,
  text: string,
  question: WireStatement,
): WireStatement {
  return {
    parameterTypes: question.parameterTypes,
    columns: null,
    open: ({ parameterFormats, parameters }) => ({
      fetch: async () => {
        state.block.requireUsable();
        // Records the preparation of the query if that is still pending, otherwise this command.
        await (records.pending.record() ?? records.recordCommand());
        const { inBlock } = state;
        if (!inBlock && !declaration.hold)
          throw error('25P01', 'DECLARE CURSOR can only be used in transaction blocks');
        cursors.declare({ ...declaration, text }, question, parameterFormats, parameters, state);
        return { suspended: false, tag: 'DECLARE CURSOR' };
      },
      close: () => undefined,
    }),
  };
}

function closeStatement({ cursors, state, records }: SessionParts, name: string | null): WireStatement {
  return commandStatement(null, async () => {
    state.block.requireUsable();
    await records.recordCommand();
    if (name === null) await cursors.closeAll();
    else await cursors.close(name);
    return { tag: name === null ? 'CLOSE CURSOR ALL' : 'CLOSE CURSOR' };
  });
}

function fetchStatement(
  session: SessionParts,
  command: Extract<CursorCommand, { kind: 'fetch' | 'move' }>,
): WireStatement {
  const { cursors } = session;
  const { kind, name, motion } = command;
  const { count } = motion;
  const isScrollable = cursors.scrolls(name);
  if (!isScrollable && (motion.direction !== 'forward' || (count !== 'all' && count < 0)))
    throw forwardOnly();
  const columns = cursors.columnsOf(name);
  const fixedFormat: FormatCode | null = cursors.isBinary(name) ? 1 : null;
  return {
    parameterTypes: [],
    columns: kind === 'move' ? null : columns,
    open: ({ resultFormats }) => {
      const format = fixedFormat ?? resultFormats[0] ?? 0;
      if (resultFormats.some((f) => f !== format) && fixedFormat === null)
        throw error('0A000', 'FETCH gives all columns in one format');
      if (isScrollable) return scrollPortal(session, command, { format, columns });
      const step: FetchStep = async (portion, rows) => {
        requireSameColumns(columns, cursors.columnsOf(name));
        const target = kind === 'move' ? DISCARD_ROWS : rows;
        const result = await cursors.fetch(name, portion, format, target);
        return { ...result, rowCount: rowCountOf(result) };
      };
      const portal = fetchPortal(session, { count, tag: kind.toUpperCase() }, step);
      if (kind === 'fetch' && count === 0)
        return {
          ...portal,
          fetch: (maxRows, rows) => {
            session.state.block.requireUsable();
            if (cursors.isOnUnkeptRow(name)) throw forwardOnly(); // FETCH 0 returns the current row again
            return portal.fetch(maxRows, rows);
          },
        };
      // MOVE returns no rows, so it cannot be suspended.
      return kind === 'move' ? { ...portal, fetch: (_maxRows, rows) => portal.fetch(0, rows) } : portal;
    },
  };
}

function forwardOnly() {
  return error('55000', 'cursor can only scan forward', {
    hint: 'declare it with SCROLL, or FETCH NEXT, n or ALL',
  });
}

const DISCARD_ROWS: RowWriter = { write: () => undefined };

/** Checks that the name still refers to a cursor with the columns described earlier. @throws WireError 0A000 */
function requireSameColumns(described: WireStatement['columns'], current: WireStatement['columns']): void {
  if (described === current || JSON.stringify(described) === JSON.stringify(current)) return;
  throw planChanged();
}

type FetchStep = (
  portion: number,
  rows: RowWriter,
) => Promise<Awaited<ReturnType<Portal['fetch']>> & { readonly rowCount: number }>;

/**
 * Creates the portal of FETCH or MOVE on a forward-only cursor. The cursor's query is counted and recorded with its
 * first rows; later rows belong to the same record, as for a suspended portal. Only a FETCH that returns no rows is
 * recorded separately.
 */
function fetchPortal(
  { state, records }: SessionParts,
  { count, tag }: { readonly count: number | 'all'; readonly tag: string },
  step: FetchStep,
): Portal {
  let remaining = count;
  return {
    async fetch(maxRows, rows) {
      state.block.requireUsable();
      const portion =
        remaining === 'all' ? maxRows : maxRows === 0 ? remaining : Math.min(remaining, maxRows);
      const { rowCount, suspended, ...rest } = remaining === 0 ? NO_ROWS : await step(portion, rows);
      if (rowCount === 0) await records.recordCommand();
      if (remaining !== 'all') remaining -= rowCount;
      const isSuspended = suspended && remaining !== 0 && maxRows > 0 && rowCount === maxRows;
      return { ...rest, suspended: isSuspended, tag: `${tag} ${rowCount}` };
    },
    close: () => undefined,
  };
}

const NO_ROWS = Object.freeze({ rowCount: 0, suspended: false });

/**
 * Creates the portal of FETCH or MOVE on a scrollable cursor. It reads all rows of the motion before it sends the
 * first.
 */
function scrollPortal(
  { cursors, state, records }: SessionParts,
  { kind, name, motion }: Extract<CursorCommand, { kind: 'fetch' | 'move' }>,
  { format, columns }: { readonly format: FormatCode; readonly columns: WireStatement['columns'] },
): Portal {
  let remaining: readonly Uint8Array[] | null = null;
  return {
    async fetch(maxRows, rows) {
      state.block.requireUsable();
      let notices: readonly WireNotice[] = [];
      if (remaining === null) {
        requireSameColumns(columns, cursors.columnsOf(name));
        const moved = await cursors.scroll(name, motion, format);
        if (moved.rows.length === 0) await records.recordCommand();
        remaining = moved.rows;
        notices = moved.notices;
        if (kind === 'move') return { suspended: false, tag: `MOVE ${remaining.length}`, notices };
      }
      const portion = maxRows === 0 ? remaining : remaining.slice(0, maxRows);
      remaining = remaining.slice(portion.length);
      await writeRows(portion, rows);
      return { suspended: remaining.length > 0, tag: `FETCH ${portion.length}`, notices };
    },
    close: () => undefined,
  };
}
