import { connect, createServer, type Socket } from 'node:net';

/** A TCP line to a server of this machine that can fall silent: what is sent stands still, and nobody is told. */
export class Line {
  readonly port: number;
  readonly #pairs: Set<readonly [Socket, Socket]>;
  readonly #state: { silent: boolean };

  private constructor(port: number, pairs: Set<readonly [Socket, Socket]>, state: { silent: boolean }) {
    this.port = port;
    this.#pairs = pairs;
    this.#state = state;
  }

  static async to(target: number): Promise<Line> {
    const pairs = new Set<readonly [Socket, Socket]>();
    const state = { silent: false };
    const server = createServer((near) => {
      const far = connect(target, '127.0.0.1');
      const pair = [near, far] as const;
      pairs.add(pair);
      const pass = (from: Socket, to: Socket): void => {
        from.on('data', (chunk) => to.write(chunk));
        from.on('error', () => undefined); // its end follows
        from.on('close', () => {
          to.destroy();
          pairs.delete(pair);
        });
        if (state.silent) from.pause();
      };
      pass(near, far);
      pass(far, near);
    });
    server.unref();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the line has no port');
    return new Line(address.port, pairs, state);
  }

  silence(): void {
    this.#state.silent = true;
    for (const [near, far] of this.#pairs) {
      near.pause();
      far.pause();
    }
  }

  /** What stood still goes on. */
  restore(): void {
    this.#state.silent = false;
    for (const [near, far] of this.#pairs) {
      near.resume();
      far.resume();
    }
  }
}
