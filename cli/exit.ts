import type { ServiceLog } from '../src/base/log.js';
import { stackOf } from '../src/base/thrown.js';

export const EXIT = Object.freeze({
  ok: 0,
  /** The request was refused, failed or found nothing, or another process is using a required resource. */
  failed: 1,
  /** The command line, environment, a file or the machine must be corrected first. */
  usage: 2,
  unreachable: 3,
  /** `audit verify`: the log was altered. */
  damaged: 4,
  /** `audit verify`: records are missing. */
  incomplete: 5,
  /** `audit verify --max-anchor-age`: the newest checkpoint is too old. */
  staleAnchor: 6,
  /** The audit log cannot be written, and the server cannot or (`OSL_AUDIT_FAILURE=exit`) must not continue. */
  auditFailed: 7,
  /** `query`: the result was truncated at the server's row limit. */
  truncated: 8,
  interrupted: 130,
});

/** An error that ends a command with a message on standard error, without a stack, and an exit status. */
export class Failure extends Error {
  readonly exit: number;
  /** Additional members for the error object of `--json`. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(exit: number, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'Failure';
    this.exit = exit;
    this.details = details;
  }
}

export function failureJson({ exit, message, details }: Failure): string {
  const [first = ''] = message.replace(/^\s*error:? /, '').split('\n');
  return JSON.stringify({ error: { message: first, hint: null, ...details, exit } });
}

/** Failure of a request that was refused, failed or found nothing. */
export function failure(message: string): Failure {
  return new Failure(EXIT.failed, `error: ${message}`);
}

/** Failure because the command line, environment, a file or the machine must be corrected first. */
export function usage(message: string): Failure {
  return new Failure(EXIT.usage, `error: ${message}`);
}

/** Errors that the operator must correct, listed by class name because importing the classes would be slow. */
const OPERATOR_FAULTS: ReadonlySet<string> = new Set([
  'StartProblem',
  'ControlFault',
  'ControlConflict',
  'DemoProblem',
  'OverlayConflict',
  'PublishedDamaged',
  'AuditDamaged',
  'QueryError',
]);

/** Errors for resources held by another process: the same command may succeed once that process ends. */
const IN_USE: ReadonlySet<string> = new Set(['InUse', 'AuditLocked']);

/** Converts any error to a Failure: one line, or diagnostics with their locations. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (!(error instanceof Error)) return new Failure(EXIT.failed, `error: ${String(error)}`);
  if (error.name === 'PolicyFault') return toFailure(error.cause);
  if (error.name === 'ManifestProblems' && 'format' in error && typeof error.format === 'function') {
    const diagnostics = 'diagnostics' in error ? error.diagnostics : [];
    return new Failure(EXIT.usage, String(error.format()), { diagnostics });
  }
  if (IN_USE.has(error.name)) return new Failure(EXIT.failed, `error: ${oneLine(error.message)}`);
  if (OPERATOR_FAULTS.has(error.name)) return usage(oneLine(causeOf(error) ?? error.message));
  if (error.name === 'AuditUnavailable')
    return new Failure(EXIT.auditFailed, `error: ${oneLine(causeOf(error) ?? error.message)}`);
  const system = systemFault(error);
  if (system !== null) return new Failure(isPassing(error) ? EXIT.failed : EXIT.usage, `error: ${system}`);
  const told = `error: ${oneLine(error.message)}`;
  if ('hint' in error && typeof error.hint === 'string')
    return new Failure(EXIT.failed, `${told}\n  hint: ${error.hint}`, { hint: error.hint });
  return new Failure(EXIT.failed, `${told} (OSL_DEBUG=1 shows where)`);
}

/** Returns the message with the system error behind it; null if there is none or the message already states it. */
function causeOf(error: Error): string | null {
  if (!(error.cause instanceof Error)) return null;
  const system = systemFault(error.cause);
  return system === null || error.message.includes('full') ? null : `${error.message}: ${system}`;
}

const SYSTEM_FAULTS: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'permission denied'],
  ['EPERM', 'not permitted'],
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the disk quota is used up'],
  ['EROFS', 'the file system is read-only'],
  ['ENOTDIR', 'a part of the path is not a directory'],
  ['EISDIR', 'it is a directory'],
  ['EEXIST', 'it exists already, and is not a directory'],
  ['ENOENT', 'it does not exist'],
  ['EMFILE', 'too many files are open'],
  ['EIO', 'the disk reports an error'],
  ['ELOOP', 'too many symbolic links'],
  ['EADDRNOTAVAIL', 'the address is not one of this machine'],
  ['ENOTFOUND', 'the host is not known'],
]);

/** Codes of temporary conditions: the same command may succeed a minute later. */
const PASSING: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'EIO', 'EADDRINUSE']);

function isPassing(error: unknown): boolean {
  return PASSING.has(fields(error)['code']);
}

/** Describes a failed system call in words; null for any other error. */
export function systemFault(error: unknown): string | null {
  const { code, path, address, port } = fields(error);
  if (typeof code !== 'string') return null;
  if (code === 'EADDRINUSE') return `port ${String(port)} of ${String(address)} is in use`;
  const words = SYSTEM_FAULTS.get(code);
  if (words === undefined) return null;
  const what = typeof path === 'string' ? path : typeof address === 'string' ? address : null;
  return what === null ? words : `${what}: ${words}`;
}

function fields(error: unknown): Readonly<Record<string, unknown>> {
  return typeof error === 'object' && error !== null ? { ...error } : {};
}

export function oneLine(message: string): string {
  return message.replace(/\s*\n\s*/g, ' ').trim();
}

/**
 * Ends a server process on an uncaught error, because its state is unknown. The error is logged; a supervisor starts
 * another process.
 *
 * @param last called before the process exits
 */
export function endOnUncaught(log: ServiceLog, last: () => void = () => undefined): void {
  process.stdout.removeAllListeners('error');
  // Ignore write errors: the reader may be gone, and in a worker nothing else handles the event.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error, origin) => {
    log.error('an error that nothing handled ends the process', { origin, stack: stackOf(error) });
    last();
    process.exit(EXIT.failed);
  });
}
