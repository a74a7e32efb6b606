/**
 * Milliseconds that this process has had on a processor so far. What must not take long is bounded by the difference
 * of two of them: a busy machine makes the time of day pass, and hardly this.
 */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
