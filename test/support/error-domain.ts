/**
 * What tap takes from the package `async-hook-domain`, without following every promise: an error that nothing caught
 * belongs to the test that began last and has not ended. Following them took a tenth of the processor.
 */
type OnError = (error: unknown, origin: 'uncaughtException' | 'unhandledRejection') => unknown;

/** Those of tests that run, the innermost last. */
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
  open.at(-1)?.onerror(error, origin);
}
