import * as realCrypto from 'node:crypto';
import { EventEmitter } from 'node:events';
import * as realOs from 'node:os';
import * as realPerformance from 'node:perf_hooks';
import type { ServiceLog } from '../../src/base/log.js';
import { type GatewayCode, requireOutside } from './bundle.js';
import { type Disk, dataPath, SIMULATED } from './disk.js';
import { FileSystem } from './file-system.js';
import type { GatewayModule, RunningGateway } from './gateway.js';
import type { Network } from './network.js';
import type { Party, Scheduler } from './scheduler.js';
import type { Host, Tap } from './socket.js';
import { Timers } from './timers.js';

export interface MachineOptions {
  readonly name: string;
  readonly code: GatewayCode;
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly disk: Disk;
  readonly pgPort: number;
  readonly httpPort: number;
  readonly env: Readonly<Record<string, string>>;
  readonly segmentBytes: number;
  readonly wireTap: Tap;
  readonly logged: (level: 'info' | 'warn' | 'error', message: string, fields: object) => void;
}

/** One start of the gateway: its modules, clock, open files and connections, all of which end with it. */
export class GatewayProcess implements Party {
  alive = true;
  readonly name: string;
  readonly timers: Timers;
  readonly files: FileSystem;
  readonly #machine: MachineOptions;
  readonly #modules: GatewayModule;
  gateway: RunningGateway | null = null;

  constructor(machine: MachineOptions, number: number) {
    const { name, scheduler, network, disk, wireTap, code } = machine;
    this.#machine = machine;
    this.name = `${name}.${number}`;
    this.timers = new Timers(scheduler, this);
    this.files = new FileSystem(disk, scheduler, this);
    const host: Host = { party: this, timers: this.timers, files: this.files };
    const module = { exports: {} as GatewayModule };
    const modules = new Map<string, unknown>([
      ['fs', this.files.module()],
      ['fs/promises', this.files.promises()],
      ['net', network.module(host, wireTap)],
      ['http', network.httpModule(host)],
      ['timers/promises', this.timers.promises],
      ['timers', this.timers],
      ['crypto', this.#crypto()],
      ['perf_hooks', measurements()],
      ['os', { ...realOs, hostname: () => name, availableParallelism: () => 2, totalmem: () => 8 * 2 ** 30 }],
      [
        'worker_threads',
        { ...(requireOutside('node:worker_threads') as object), Worker: this.#deadThread() },
      ],
    ]);
    const require = (id: string): unknown => modules.get(id.replace(/^node:/, '')) ?? requireOutside(id);
    const { timers } = this;
    code(
      require,
      module,
      module.exports,
      this.#process(100 + number),
      timers.dateClass(),
      {
        now: timers.elapsed,
        timeOrigin: 0,
        mark: () => undefined,
        eventLoopUtilization: () => ({ utilization: 0 }),
      },
      timers.setTimeout,
      timers.clearTimeout,
      timers.setInterval,
      timers.clearTimeout,
      timers.setImmediate,
      timers.clearImmediate,
      this.#webCrypto(),
      Object.assign(Object.create(Math), { random: () => scheduler.random.next() }),
    );
    this.#modules = module.exports;
  }

  /** The global `process`: what it tells of the machine is the same on every machine. */
  #process(pid: number): object {
    const { scheduler, env } = this.#machine;
    const values = {
      pid,
      env: { ...env },
      cwd: () => SIMULATED,
      constrainedMemory: () => 0,
      hrtime: (): readonly number[] => [Math.floor(scheduler.now / 1e6), (scheduler.now % 1e6) * 1_000],
    };
    const own = Object.entries(values).map(([name, value]) => [name, { value }]);
    return Object.create(process, Object.fromEntries(own) as PropertyDescriptorMap);
  }

  async start(): Promise<void> {
    const { name, pgPort, httpPort, env, segmentBytes } = this.#machine;
    this.gateway = await this.#modules.openGateway({
      env,
      dir: dataPath(name),
      segmentBytes,
      pgPort,
      httpPort,
      log: this.#log(),
    });
  }

  #log(): ServiceLog {
    const { logged } = this.#machine;
    const at =
      (level: 'info' | 'warn' | 'error') =>
      (message: string, fields: object = {}): void =>
        logged(level, message, fields);
    return { info: at('info'), warn: at('warn'), error: at('error') };
  }

  /** Verdict of the independent verifier on the log. */
  verify(): ReturnType<GatewayModule['verifyAuditLog']> {
    return this.#modules.verifyAuditLog(dataPath(this.#machine.name, '.osl', 'audit'));
  }

  async records() {
    const all = [];
    for await (const record of this.#modules.readRecords(dataPath(this.#machine.name, '.osl', 'audit')))
      all.push(record);
    return all;
  }

  /** Ends the process at once, as kill -9 does. */
  kill(): void {
    this.alive = false;
    this.gateway = null;
    const { disk, network, scheduler } = this.#machine;
    disk.cutWrites(scheduler.random);
    network.bury(this);
  }

  /** Threads end as soon as they begin, as on a machine that has no room for them: what needs one does without. */
  #deadThread(): object {
    const { setImmediate } = this.timers;
    return class extends EventEmitter {
      constructor() {
        super();
        setImmediate(() => this.emit('exit', 1));
      }
      postMessage(): void {
        // nobody reads it
      }
      unref(): void {
        // it keeps nothing alive
      }
      async terminate(): Promise<number> {
        return 1;
      }
    };
  }

  #crypto(): object {
    const { random } = this.#machine.scheduler;
    const randomBytes = (size: number): Buffer => {
      const bytes = Buffer.alloc(size);
      random.fill(bytes);
      return bytes;
    };
    const randomUUID = (): string => {
      const bytes = randomBytes(16);
      bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
      bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
      return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    };
    const randomInt = (a: number, b?: number): number =>
      b === undefined ? random.below(a) : a + random.below(b - a);
    return { ...realCrypto, randomBytes, randomUUID, randomInt, webcrypto: this.#webCrypto() };
  }

  /** Web Crypto answers from threads of Node; here when the scheduler says so. */
  #webCrypto(): object {
    const { scheduler } = this.#machine;
    const { subtle } = realCrypto.webcrypto;
    const named =
      (name: string) =>
      (...args: unknown[]): Promise<unknown> => {
        const work = Reflect.get(subtle, name) as (...args: unknown[]) => Promise<unknown>;
        return scheduler.outside(this, work.apply(subtle, args), name);
      };
    const names = [
      'sign',
      'verify',
      'digest',
      'importKey',
      'exportKey',
      'deriveBits',
      'deriveKey',
      'encrypt',
      'decrypt',
    ];
    return {
      subtle: Object.fromEntries(names.map((name) => [name, named(name)])),
      getRandomValues: (bytes: Uint8Array) => {
        scheduler.random.fill(bytes);
        return bytes;
      },
    };
  }
}

/** `node:perf_hooks` of a process in which nothing is measured: Node would hold observers of the real one for ever. */
function measurements(): object {
  const nothing = (): void => undefined;
  return {
    ...realPerformance,
    PerformanceObserver: class {
      observe = nothing;
      disconnect = nothing;
    },
    monitorEventLoopDelay: () =>
      Object.assign(realPerformance.createHistogram(), { enable: nothing, disable: nothing }),
  };
}
