import { graphql } from 'graphql';
import pg from 'pg';
import { createPostGraphileSchema, withPostGraphileContext } from 'postgraphile';

const pgPool = new pg.Pool({ max: 1 });
const schema = await createPostGraphileSchema(pgPool, ['entities'], { disableDefaultMutations: true });
const ask = async (source) =>
  withPostGraphileContext({ pgPool }, async (contextValue) => {
    const r = await graphql({ schema, source, contextValue });
    if (r.errors) console.error(JSON.stringify(r.errors).slice(0, 400));
  });
await ask(
  '{ allCustomers(first: 3, orderBy: ID_ASC) { totalCount pageInfo { hasNextPage endCursor } edges { cursor node { id name region } } } }',
);
await ask(
  '{ allCustomers(orderBy: ID_ASC) { nodes { id ordersByCustomerId(first: 2, orderBy: ID_DESC) { nodes { id amount placedAt } } } } }',
);
await ask(
  '{ customerById(id: 1) { name ordersByCustomerId(condition: {status: "paid"}) { totalCount nodes { id } } } }',
);
await ask(
  '{ allOrders(first: 5, offset: 2, orderBy: [REGION_ASC, ID_DESC], condition: {region: "eu"}) { nodes { id quantity customerByCustomerId { name } } } }',
);
await ask(
  '{ allProducts(orderBy: ID_ASC) { nodes { nodeId label tags specs categoryByCategoryId { name categoryByParentId { name } } } } }',
);
await ask('{ allOrders(last: 2, orderBy: ID_ASC) { nodes { id } pageInfo { hasPreviousPage } } }');
await ask(
  '{ allEmployees(first: 2, after: null) { nodes { name employeesByManagerId { nodes { name } } } } }',
);
await pgPool.end();
process.exit(0);
