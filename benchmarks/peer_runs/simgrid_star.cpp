// Transfers over a star of links with SimGrid's C++, as in simgrid_star.py: simgrid_star PLAN LINKS MODEL ENDS.
#include <cstdio>
#include <fstream>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

struct Row {
  int transfer, one, other;
  double start, size;
};

int main(int argc, char** argv)
{
  sg::Engine engine(&argc, argv);
  if (argc != 5 || std::string(argv[3]) != "simgrid") {
    std::fprintf(stderr, "PLAN LINKS MODEL ENDS expected; the only model is simgrid\n");
    return 2;
  }
  std::vector<Row> rows;
  std::ifstream plan(argv[1]);
  std::string line;
  std::getline(plan, line); // the header
  for (Row row; std::getline(plan, line);)
    if (std::sscanf(line.c_str(), "%d,%lf,%d,%d,%lf", &row.transfer, &row.start, &row.one, &row.other, &row.size) == 5)
      rows.push_back(row);
  auto* zone = sg::create_full_zone("star");
  const int count = std::stoi(argv[2]);
  std::vector<sg::Host*> hosts;
  std::vector<sg::Link*> spokes;
  for (int i = 0; i < count; i++) {
    hosts.push_back(zone->create_host("host" + std::to_string(i), 1e9));
    spokes.push_back(zone->create_link("link" + std::to_string(i), 1.25e9)->set_latency(1e-3));
    for (int j = 0; j < i; j++)
      zone->add_route(hosts[i]->get_netpoint(), hosts[j]->get_netpoint(), nullptr, nullptr,
                      {sg::LinkInRoute(spokes[i]), sg::LinkInRoute(spokes[j])}, true);
  }
  zone->seal();
  std::vector<sg::CommPtr> transfers;
  sg::Actor::create("source", hosts[0], [&] {
    for (const Row& row : rows) {
      sg::this_actor::sleep_until(row.start);
      transfers.push_back(sg::Comm::sendto_async(hosts[row.one], hosts[row.other], row.size));
    }
    sg::Comm::wait_all(transfers);
  });
  engine.run();
  std::FILE* ends = std::fopen(argv[4], "w");
  std::fprintf(ends, "transfer,end\n");
  for (size_t i = 0; i < rows.size(); i++)
    std::fprintf(ends, "%d,%.17g\n", rows[i].transfer, transfers[i]->get_finish_time());
  return std::fclose(ends);
}
