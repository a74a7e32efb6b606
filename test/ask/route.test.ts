import t from 'tap';
import { Route } from '../../src/ask/routes/route.js';

t.test(
  'a route is of one chain: rights that are equal may come with other values of attributes',
  async (t) => {
    const model = {};
    const caller = (tenant: string, ...chain: string[]) => ({
      model,
      identity: { tenant, chain },
      access: { signature: 's', claimed: '' },
      purpose: null,
      circumstances: { emergency: null },
    });
    const isOf = (other: object): boolean => {
      const route: unknown = Object.create(Route.prototype, {
        permit: { value: { caller: caller('t', 'user:ann') } },
      });
      return Route.prototype.isOf.call(route as Route, other as Parameters<Route['isOf']>[0]); // as far as it looks
    };
    t.equal(isOf(caller('t', 'user:ann')), true);
    t.equal(isOf(caller('t', 'user:bob')), false, 'another person of the same roles');
    t.equal(isOf(caller('t', 'user:ann', 'agent:scout')), false, 'a longer chain');
    t.equal(isOf(caller('u', 'user:ann')), false, 'another tenant');
    t.equal(isOf({ ...caller('t', 'user:ann'), model: {} }), false, 'another model');
  },
);
