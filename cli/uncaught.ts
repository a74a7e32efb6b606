import type { ServiceLog } from '../src/base/log.js';
import { stackOf } from '../src/base/thrown.js';
import { EXIT } from './exit.js';

/**
 * Ends a process that serves where an error was handled by nobody: what state it is in nobody knows then. The log says
 * what it was, and where; a supervisor starts another.
 *
 * @param last what is still to be done
 */
export function endOnUncaught(log: ServiceLog, last: () => void = () => undefined): void {
  process.stdout.removeAllListeners('error');
  process.stdout.on('error', () => undefined); // who read where it listens may go
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error, origin) => {
    log.error('an error that nothing handled ends the process', { origin, stack: stackOf(error) });
    last();
    process.exit(EXIT.failed);
  });
}
