import { mintToken } from '../../policy/index.js';
import type { GatewayCode } from './bundle.js';
import { ControlStore } from './control-store.js';
import { Disk, dataPath } from './disk.js';
import { FileSystem } from './file-system.js';
import type { RunningGateway } from './gateway.js';
import { Judge, SILENCE_SECONDS, type Violation } from './judge.js';
import { GatewayProcess, type MachineOptions } from './machine.js';
import { Network } from './network.js';
import type { Event, Plan, SessionPlan } from './plan.js';
import { CONTROL_PORT, DATABASE_PORT, Database, USUAL_US } from './postgres.js';
import { RestClient } from './rest-client.js';
import { type Party, Scheduler } from './scheduler.js';
import type { Host } from './socket.js';
import { START_MS, Timers } from './timers.js';
import { type ClientParts, WireClient } from './wire-client.js';
import { manifestOf, policyOf, priceOf, type Version } from './world.js';

export interface RunResult {
  readonly violations: readonly Violation[];
  readonly steps: number;
  readonly digest: number;
  readonly virtualUs: number;
  readonly exchanges: number;
}

/** Signs all tokens of all runs. */
const SECRET = Buffer.alloc(48, 'simulated signing key');

/** Largest time of a slow statement in the database, in µs. */
const SLOW_US = 90_000;

/** Virtual time after which a run that has not ended is stuck. */
const LONGEST_US = 1_500_000_000;

const tokens = new Map<number, string>();

async function tokenOf(caller: number): Promise<string> {
  const known = tokens.get(caller);
  if (known !== undefined) return known;
  const claims = {
    tenant: 'sim',
    chain: [`user:${caller}`],
    aclRoles: ['own', 'notes'],
    issuedAt: START_MS / 1_000,
    tokenId: `00000000-0000-4000-8000-${String(caller).padStart(12, '0')}`,
  };
  const token = await mintToken(claims, { algorithm: 'HS256', secret: SECRET });
  tokens.set(caller, token);
  return token;
}

/** Runs a plan. Everything that happens follows from it. */
export async function run(
  plan: Plan,
  code: GatewayCode,
  trace: ((line: string) => void) | null = null,
): Promise<RunResult> {
  const simulation = new Simulation(plan, code, trace);
  return simulation.run();
}

/** A gateway and its machine, through all its starts. */
interface Machine {
  readonly options: MachineOptions;
  readonly disk: Disk;
  process: GatewayProcess;
  starts: number;
  version: number;
  /** True while it is being started or stopped. */
  isChanging: boolean;
}

class Simulation {
  readonly #plan: Plan;
  readonly #scheduler: Scheduler;
  readonly #network: Network;
  readonly #judge: Judge;
  readonly #world: Party = { name: 'world', alive: true };
  readonly #clients: Party = { name: 'clients', alive: true };
  readonly #database: Database;
  /** Null unless the gateways share their policy. */
  readonly #control: { readonly store: ControlStore; readonly database: Database } | null;
  #activated = 0;
  readonly #machines: Machine[];
  #left = 0;

  constructor(plan: Plan, code: GatewayCode, trace: ((line: string) => void) | null) {
    this.#plan = plan;
    this.#scheduler = new Scheduler(plan.seed);
    this.#scheduler.trace = trace;
    this.#network = new Network(this.#scheduler);
    this.#judge = new Judge(this.#scheduler);
    const upstream: Party = { name: 'database', alive: true };
    this.#database = new Database(this.#scheduler, this.#network, this.#hostOf(upstream));
    this.#control = plan.isShared ? this.#shared() : null;
    this.#machines = Array.from({ length: plan.gateways }, (_, n) => this.#machine(n, code));
  }

  #shared() {
    const store = new ControlStore(this.#scheduler);
    const host = this.#hostOf({ name: 'control', alive: true });
    store.activate(policyOf(0));
    return { store, database: new Database(this.#scheduler, this.#network, host, store) };
  }

  #hostOf(party: Party): Host {
    return { party, timers: new Timers(this.#scheduler, party), files: null };
  }

  #machine(number: number, code: GatewayCode): Machine {
    const disk = new Disk();
    const { sync, poolSize } = this.#plan;
    const options: MachineOptions = {
      name: `gateway${number}`,
      code,
      disk,
      scheduler: this.#scheduler,
      network: this.#network,
      pgPort: 6_000 + number,
      httpPort: 7_000 + number,
      env: {
        SIM_DATABASE_URL: `postgres://reader@127.0.0.1:${DATABASE_PORT}/app`,
        OSL_AUDIT_SYNC: sync,
        OSL_POOL_SIZE: String(poolSize),
        OSL_DRIFT_SECONDS: '0',
        OSL_MANIFEST: dataPath(`gateway${number}`, 'manifest.yaml'),
        OSL_POLICY: dataPath(`gateway${number}`, 'policy.yaml'),
        OSL_DATA_DIR: dataPath(`gateway${number}`, '.osl'),
        ...(this.#plan.isShared && {
          OSL_CONTROL_URL: `postgres://gateway@127.0.0.1:${CONTROL_PORT}/control`,
          OSL_CONTROL_SILENCE_SECONDS: String(SILENCE_SECONDS),
          OSL_POLICY_SOURCE: 'control',
        }),
      },
      segmentBytes: 128 * 1024,
      wireTap: this.#judge.wireTap,
      logged: (level, message, fields) => {
        this.#scheduler.trace?.(`    log ${level} ${message} ${JSON.stringify(fields)}`);
        if (JSON.stringify(fields).includes('the model does not know'))
          this.#judge.note('a statement that the model of the database lacks', JSON.stringify(fields));
        if (/internal error/.test(message))
          this.#judge.note('an internal error', `${message} ${JSON.stringify(fields)}`);
      },
    };
    this.#judge.watchLog(number, disk, sync);
    this.#prepareDisk(options);
    return {
      options,
      disk,
      process: new GatewayProcess(options, 0),
      starts: 0,
      version: 0,
      isChanging: false,
    };
  }

  #prepareDisk({ name, disk, scheduler }: MachineOptions): void {
    disk.mkdir(dataPath(name), true);
    disk.mkdir(dataPath(name, '.osl', 'keys'), true);
    const files = new FileSystem(disk, scheduler, this.#world).module() as {
      writeFileSync(path: string, data: string, options: object): void;
    };
    const write = (path: readonly string[], data: string): void =>
      files.writeFileSync(dataPath(name, ...path), data, { flag: 'w', flush: true });
    for (const key of ['signing.key', 'masking.key'])
      write(['.osl', 'keys', key], `${SECRET.toString('base64')}\n`);
    write(['manifest.yaml'], manifestOf(0));
    write(['policy.yaml'], policyOf(0));
    disk.syncNames(dataPath(name));
    disk.syncNames(dataPath(name, '.osl'));
    disk.syncNames(dataPath(name, '.osl', 'keys'));
  }

  async run(): Promise<RunResult> {
    const onRejection = (error: unknown): void => {
      this.#judge.note('an unhandled rejection', error instanceof Error ? `${error.stack}` : String(error));
    };
    const onException = (error: unknown): void => {
      this.#judge.note('an uncaught exception', error instanceof Error ? `${error.stack}` : String(error));
    };
    process.on('unhandledRejection', onRejection);
    process.on('uncaughtException', onException);
    try {
      await this.#drive(this.#live());
    } catch (error) {
      this.#judge.note('the simulation failed', error instanceof Error ? `${error.stack}` : String(error));
    } finally {
      process.off('unhandledRejection', onRejection);
      process.off('uncaughtException', onException);
      this.#network.close();
    }
    const { steps, digest, now: virtualUs } = this.#scheduler;
    return { violations: this.#judge.violations, steps, digest, virtualUs, exchanges: this.#judge.exchanges };
  }

  /** Lets things happen until `work` has settled. */
  async #drive(work: Promise<void>): Promise<void> {
    let isOver = false;
    const settled = work.finally(() => {
      isOver = true;
    });
    settled.catch(() => undefined); // awaited below
    while (!isOver && this.#judge.violations.length === 0) {
      try {
        if (!(await this.#scheduler.step())) {
          this.#judge.note('nothing happens any more', `${this.#left} sessions are left`);
          return;
        }
      } catch (error) {
        this.#judge.note('an uncaught exception', error instanceof Error ? `${error.stack}` : String(error));
      }
      if (this.#scheduler.now > LONGEST_US)
        this.#judge.note('the run does not end', `${this.#left} sessions are left`);
    }
    if (isOver) await settled;
  }

  async #live(): Promise<void> {
    await this.#startAll();
    const { sessions, events } = this.#plan;
    const beganAt = this.#scheduler.now;
    this.#left = sessions.length;
    const living = sessions.map(async (session) => {
      await this.#pauseUntil(this.#clients, beganAt + session.atUs);
      await this.#session(session);
      this.#left -= 1;
    });
    const happening = events.map(async (event) => {
      await this.#pauseUntil(this.#world, beganAt + event.atUs);
      await this.#event(event);
    });
    await Promise.all([...living, ...happening]);
    await this.#scheduler.pause(this.#world, 15_000_000, 'quiet');
    for (const [number, machine] of this.#machines.entries()) await this.#judgeRest(number, machine);
  }

  async #startAll(): Promise<void> {
    for (const [number, machine] of this.#machines.entries()) {
      this.#judge.beginVersion(number, versionOf(0))();
      await machine.process.start();
    }
  }

  #pauseUntil(party: Party, at: number): Promise<void> {
    return this.#scheduler.pause(party, Math.max(0, at - this.#scheduler.now), 'begin');
  }

  async #session({ caller, gateway, surface, acts }: SessionPlan): Promise<void> {
    const machine = this.#machines[gateway];
    if (machine === undefined) return;
    const { scheduler, network, pgPort, httpPort } = machine.options;
    const parts: ClientParts = {
      scheduler,
      network,
      host: this.#hostOf(this.#clients),
      judge: this.#judge,
      gateway,
      port: surface === 'wire' ? pgPort : httpPort,
      caller,
      token: await tokenOf(caller),
    };
    await (surface === 'wire' ? new WireClient(parts) : new RestClient(parts)).live(acts);
  }

  async #event(event: Event): Promise<void> {
    this.#scheduler.trace?.(`    ${JSON.stringify(event)}`);
    switch (event.do) {
      case 'reload':
        if (this.#control !== null) return this.#activate(this.#control.store);
        return this.#withMachine(event.gateway, (machine) => this.#reload(event.gateway, machine));
      case 'revoke':
        return this.#withMachine(event.gateway, (machine) =>
          this.#revoke(event.gateway, event.caller, machine),
        );
      case 'kill':
      case 'power': {
        const how = event.do;
        return this.#withMachine(event.gateway, (machine) => this.#crash(how, event.gateway, machine));
      }
      case 'restart':
        return this.#withMachine(event.gateway, (machine) => this.#restart(event.gateway, machine));
      case 'disk full':
      case 'disk broken':
      case 'disk slow':
        return this.#withMachine(event.gateway, (machine) =>
          this.#diskTrouble(event.do, event.forUs, machine),
        );
      case 'end sessions':
      case 'reset sessions': {
        const over = this.#judge.beginTrouble();
        this.#database.endSessions(event.do === 'reset sessions');
        over();
        return;
      }
      case 'control down':
      case 'control resets':
      case 'control slow':
        return this.#controlTrouble(event.do, event.forUs);
      default:
        return this.#databaseTrouble(event.do, event.forUs);
    }
  }

  /** One change of a machine at a time. */
  async #withMachine(number: number, work: (machine: Machine) => Promise<void>): Promise<void> {
    const machine = this.#machines[number];
    if (machine === undefined || machine.isChanging) return;
    machine.isChanging = true;
    await work(machine);
    machine.isChanging = false;
  }

  async #reload(number: number, machine: Machine): Promise<void> {
    const { process, options } = machine;
    const version = machine.version + 1;
    machine.version = version;
    const files = process.files.module() as {
      writeFileSync(path: string, data: string, options: object): void;
    };
    // An operator's editor writes to the disk of the machine, whatever the gateway meets there.
    const faults = { ...options.disk.faults };
    Object.assign(options.disk.faults, { write: null, sync: null });
    files.writeFileSync(dataPath(options.name, 'manifest.yaml'), manifestOf(version), {
      flag: 'w',
      flush: true,
    });
    files.writeFileSync(dataPath(options.name, 'policy.yaml'), policyOf(version), { flag: 'w', flush: true });
    Object.assign(options.disk.faults, faults);
    const ended = this.#judge.beginVersion(number, versionOf(version));
    await process.gateway?.open.reload();
    ended();
  }

  async #activate(store: ControlStore): Promise<void> {
    this.#activated += 1;
    this.#judge.activated(this.#plan.gateways, { policy: this.#activated, price: 7 });
    store.activate(policyOf(this.#activated));
  }

  async #revoke(number: number, caller: number, { process }: Machine): Promise<void> {
    const { gateways, isShared } = this.#plan;
    const revoked = isShared
      ? this.#judge.beginSharedRevocation(gateways, number, caller)
      : this.#judge.beginRevocation(number, caller);
    const result = await process.gateway?.service.revocations.revoke({
      kind: 'subject',
      name: `user:${caller}`,
    });
    // What could not be shared is shared later, at a time that nobody promises.
    if (result?.shared !== false) revoked();
  }

  async #crash(how: 'kill' | 'power', number: number, machine: Machine): Promise<void> {
    const over = this.#judge.beginTrouble();
    machine.process.kill();
    if (how === 'power') machine.disk.powerFailure(this.#scheduler.random);
    await this.#scheduler.pause(this.#world, this.#scheduler.random.between(1_000, 300_000), 'down');
    await this.#startAgain(number, machine);
    over();
  }

  async #restart(number: number, machine: Machine): Promise<void> {
    const over = this.#judge.beginTrouble();
    this.#judge.beginStop(number);
    // While the log cannot be written, outcomes are missing until the next start; they are judged at the next stop.
    const isWritten = !logFails(machine);
    await machine.process.gateway?.stop(this.#scheduler.random.between(0, 200));
    if (isWritten) await this.#judgeStopped(number, machine);
    machine.process.kill();
    await this.#startAgain(number, machine);
    over();
  }

  async #startAgain(number: number, machine: Machine): Promise<void> {
    machine.starts += 1;
    machine.process = new GatewayProcess(machine.options, machine.starts);
    await machine.process.start();
    if (this.#control === null) this.#judge.beginVersion(number, versionOf(machine.version))();
  }

  async #diskTrouble(
    how: 'disk full' | 'disk slow' | 'disk broken',
    forUs: number,
    { disk }: Machine,
  ): Promise<void> {
    const over = this.#judge.beginTrouble();
    if (how === 'disk full') disk.faults.write = 'ENOSPC';
    if (how === 'disk broken') disk.faults.sync = 'EIO';
    if (how === 'disk slow') disk.faults.slowMs = this.#scheduler.random.between(20, 400);
    await this.#scheduler.pause(this.#world, forUs, how);
    Object.assign(disk.faults, { write: null, sync: null, slowMs: 0 });
    over();
  }

  async #databaseTrouble(
    how: 'database down' | 'database full' | 'database breaks' | 'database slow',
    forUs: number,
  ): Promise<void> {
    const over = this.#judge.beginTrouble();
    const { mood } = this.#database;
    if (how === 'database down') {
      this.#network.down.add(DATABASE_PORT);
      this.#database.endSessions(true);
    }
    if (how === 'database full') mood.isFull = true;
    if (how === 'database breaks') mood.breaks = 0.05;
    if (how === 'database slow') mood.usualUs = SLOW_US;
    await this.#scheduler.pause(this.#world, forUs, how);
    // Another trouble may go on.
    if (how === 'database down') this.#network.down.delete(DATABASE_PORT);
    if (how === 'database full') mood.isFull = false;
    if (how === 'database breaks') mood.breaks = 0;
    if (how === 'database slow') mood.usualUs = USUAL_US;
    over();
  }

  async #controlTrouble(
    how: 'control down' | 'control resets' | 'control slow',
    forUs: number,
  ): Promise<void> {
    const control = this.#control?.database;
    if (control === undefined) return;
    const over = this.#judge.beginTrouble();
    control.endSessions(true);
    if (how === 'control down') this.#network.down.add(CONTROL_PORT);
    if (how === 'control slow') control.mood.usualUs = 10 * SLOW_US;
    await this.#scheduler.pause(this.#world, how === 'control resets' ? 0 : forUs, how);
    this.#network.down.delete(CONTROL_PORT);
    control.mood.usualUs = USUAL_US;
    over();
  }

  /** After all clients have gone: nothing of them is left, and the log says what happened. */
  async #judgeRest(number: number, machine: Machine): Promise<void> {
    const { gateway } = machine.process;
    if (gateway === null) return;
    // The gateway's own checks run now and then, so what is left must stay.
    for (let look = 1; leftOf(gateway).length > 0 && look < 5; look++)
      await this.#scheduler.pause(this.#world, 130_000, 'look again');
    for (const what of leftOf(gateway)) this.#judge.note('something is left', `${what} at gateway ${number}`);
    for (let second = 0; logFails(machine) && second < 60; second++)
      await this.#scheduler.pause(this.#world, 1_000_000, 'the log goes on');
    await gateway.stop(1_000);
    await this.#judgeStopped(number, machine);
  }

  async #judgeStopped(number: number, { process }: Machine): Promise<void> {
    const verdict = await process.verify();
    if (verdict.integrity !== 'intact') this.#judge.note('the log is not intact', JSON.stringify(verdict));
    this.#judge.judgeLog(number, await process.records());
  }
}

function logFails({ process }: Machine): boolean {
  const stats = process.gateway?.service.audit.stats();
  return stats !== undefined && stats.failure !== null;
}

/** The version that files have: each has a manifest of its own. */
function versionOf(number: number): Version {
  return { policy: number, price: priceOf(number) };
}

/** Resources that a gateway still holds although all clients have gone. */
function leftOf({ service, pg, http }: RunningGateway): readonly string[] {
  const found: string[] = [];
  const left = (what: string, count: number, most = 0): void => {
    if (count > most) found.push(`${count} ${what}`);
  };
  left('connections of the Postgres port', pg.connections);
  left('sessions', pg.register.operatorViews.length);
  left('requests', http.inflight.executions.length);
  for (const engine of service.engines.values())
    for (const pool of engine.pools()) {
      left(`running statements (${pool.purpose})`, pool.running);
      left(`waiting statements (${pool.purpose})`, pool.waiting);
      left(`sessions of the database (${pool.purpose})`, pool.open, pool.size);
    }
  left('bytes of the spool', service.spool?.stats().bytes ?? 0);
  left('statements that wait for memory', service.memory.stats().waiting);
  left('bytes of answers', service.memory.stats().held - service.answers.stats().bytes);
  return found;
}
