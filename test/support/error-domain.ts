/**
 * What tap takes from the package `async-hook-domain`, without following every promise: an error that nothing caught
 * fails the file as such, and not the test in which it came. Following them took a tenth of the processor.
 */
type OnError = (error: unknown, origin: 'uncaughtException' | 'unhandledRejection') => unknown;

/** Those of tests that have not ended, that of the file first. */
const open: Domain[] = [];

export class Domain {
  readonly onerror: OnError;

  constructor(onerror: OnError) {
    this.onerror = onerror;
    if (open.length === 0) process.on('uncaughtException', onUncaught);
    open.push(this);
  }

  destroy(): void {
    const at = open.indexOf(this);
    if (at < 0) return;
    open.splice(at, 1);
    if (open.length === 0) process.off('uncaughtException', onUncaught);
  }
}

/** Leaves the error to whoever else listens for such errors. */
function onUncaught(error: unknown, origin: NodeJS.UncaughtExceptionOrigin): void {
  if (process.listenerCount('uncaughtException') > 1) return;
  open[0]?.onerror(error, origin);
}
