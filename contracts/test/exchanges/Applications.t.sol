// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ChatMember} from "../../src/examples/exchanges/Chat.sol";
import {Customer, Department} from "../../src/examples/exchanges/Company.sol";
import {Prosumer} from "../../src/examples/exchanges/Prosumer.sol";
import {Trail} from "../../src/examples/exchanges/Shipment.sol";
import {Heater, Sensor} from "../../src/examples/exchanges/Thermostat.sol";
import {CareTaker, Wearable} from "../../src/examples/exchanges/Wearable.sol";
import {MessagePublisher} from "../../src/exchanges/MessagePublisher.sol";
import {MessageSubscriber} from "../../src/exchanges/MessageSubscriber.sol";
import {IExchanges} from "../../src/interfaces/IExchanges.sol";
import {ExchangesTest} from "./ExchangesTest.sol";

/// @notice The applications of chapter 4 of the DPS paper.
contract ApplicationsTest is ExchangesTest {
    function admit(MessagePublisher publisher) private {
        publisher.requestPublishingIn(exchange);
        exchanges.approvePublisher(exchange, address(publisher));
    }

    function enrol(MessageSubscriber subscriber, bytes32 queue) private {
        subscriber.subscribeTo(queue);
        if (!exchanges.getQueue(queue).terms.openSubscribing) {
            exchanges.approveSubscriber(queue, address(subscriber));
        }
    }

    /// @dev 4.1: sensors and actuators; all temperatures of a building by one key.
    function test_sensorsAndActuators() public {
        Heater kitchen = new Heater(exchanges, address(this), 20);
        Heater building = new Heater(exchanges, address(this), 15);
        enrol(kitchen, makeQueue("kitchen-temperature"));
        enrol(building, makeQueue("cellar-temperature"));
        Sensor sensor = new Sensor(exchanges, address(this), exchange, "kitchen-temperature");
        Sensor everywhere = new Sensor(exchanges, address(this), exchange, "*-temperature");
        admit(sensor);
        admit(everywhere);
        sensor.report(18);
        assertTrue(kitchen.isOn());
        assertFalse(building.isOn());
        everywhere.report(-3);
        assertTrue(building.isOn());
        sensor.report(21);
        assertFalse(kitchen.isOn());
    }

    /// @dev 4.2: proposals in a company, whose customers publish requests and receive the newsletter.
    function test_companyProposals() public {
        Department research = new Department(exchanges, address(this), 2);
        enrol(research, makeQueue("proposals", plainTerms()));
        MessagePublisher[2] memory employees =
            [new MessagePublisher(exchanges, address(this)), new MessagePublisher(exchanges, address(this))];
        admit(employees[0]);
        admit(employees[1]);
        Customer customer = new Customer(exchanges, address(this));
        admit(customer);
        enrol(customer, makeQueue("newsletter"));

        employees[0].publishIn(exchange, "proposals", "a four-day week");
        employees[0].publishIn(exchange, "proposals", "a four-day week");
        assertEq(research.carriedOut(), 0, "one voice twice is one voice");
        employees[1].publishIn(exchange, "proposals", "a four-day week");
        assertEq(research.carriedOut(), keccak256("a four-day week"));
        customer.publishIn(exchange, "proposals", "lower prices");
        assertEq(research.supporters(keccak256("lower prices")), 1);
        employees[0].publishIn(exchange, "newsletter", "we are closed on Fridays");
        assertEq(customer.letters(), 1);
    }

    /// @dev 4.3: a prosumer of district 2 consumes and offers; value is paid to those who take.
    function test_energyProsumer() public {
        Prosumer[3] memory homes;
        for (uint256 i; i < 3; ++i) {
            homes[i] = new Prosumer(exchanges, address(this), exchange);
            admit(homes[i]);
        }
        bytes32 district = makeQueue("district-2", plainTerms());
        enrol(homes[1], district);
        enrol(homes[2], district);
        enrol(homes[0], makeQueue("district-1", plainTerms()));
        homes[1].offer{value: 9}("district-1", 500);
        homes[0].offer("district-*", 300);
        assertEq(homes[0].offered(), 500);
        assertEq(homes[1].offered() + homes[2].offered(), 600);
        homes[0].collectTo(payee);
        assertEq(payee.balance, 9);
    }

    /// @dev 4.4: what the doctor and the relatives get is a ciphertext; a held copy waits for the doctor's account.
    function test_wearable() public {
        CareTaker doctor = new CareTaker(exchanges, address(this));
        CareTaker relative = new CareTaker(exchanges, address(this));
        IExchanges.QueueTerms memory terms = plainTerms();
        (terms.condition, terms.subject) = (IExchanges.Condition.Account, bytes32(uint256(uint160(stranger))));
        enrol(doctor, makeQueue("doctor", plainTerms()));
        enrol(relative, makeQueue("relatives", terms));
        Wearable wearable = new Wearable(exchanges, address(this), exchange);
        admit(wearable);
        bytes memory sealed_ = abi.encodePacked(keccak256("pulse 71 under a key of the readers"));
        vm.recordLogs();
        wearable.tell("*", sealed_);
        assertEq(doctor.lastCiphertext(), keccak256(sealed_));
        assertEq(relative.lastCiphertext(), 0, "the relatives hear of it when the doctor says so");
        Waiting memory waiting = lastHeld();
        waiting.payload = sealed_;
        vm.prank(stranger);
        release(waiting);
        assertEq(relative.lastCiphertext(), keccak256(sealed_));
    }

    /// @dev 4.5: everybody who handles a shipment adds a station to its trail, and nobody else.
    function test_shipment() public {
        Trail trail = new Trail(exchanges, address(this));
        enrol(trail, makeQueue("container-17", plainTerms()));
        MessagePublisher[3] memory carriers;
        for (uint256 i; i < 3; ++i) {
            carriers[i] = new MessagePublisher(exchanges, address(this));
            admit(carriers[i]);
            carriers[i].publishIn(exchange, i == 1 ? bytes("container-##") : bytes("container-17"), bytes("arrived"));
        }
        assertEq(trail.count(), 3);
        for (uint256 i; i < 3; ++i) {
            (address carrier,, bytes32 report) = trail.stations(i);
            assertEq(carrier, address(carriers[i]));
            assertEq(report, keccak256("arrived"));
        }
        vm.prank(stranger);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotApproved.selector, exchange, stranger));
        exchanges.publish(exchange, "container-17", "forged");
    }

    /// @dev 4.6: many to many in a room, one to one by a member's key, one to many by a newsletter.
    function test_chatAndNewsletter() public {
        string[3] memory names = ["ada", "bob", "eve"];
        ChatMember[3] memory members;
        for (uint256 i; i < 3; ++i) {
            members[i] = new ChatMember(exchanges, address(this), exchange);
            admit(members[i]);
            enrol(members[i], makeQueue(names[i], plainTerms()));
        }
        members[0].say("*", "hello, all");
        members[1].say("*", "hello, ada");
        members[2].say("bob", "a word with you");
        assertEq(members[0].heard(), 1);
        assertEq(members[1].heard(), 2);
        assertEq(members[2].heard(), 2);
        assertEq(members[1].lastHeard(), keccak256("a word with you"));

        bytes32 newsletter = makeQueue("newsletter");
        enrol(members[0], newsletter);
        enrol(members[2], newsletter);
        exchanges.publish(exchange, "newsletter", "issue 1");
        assertEq(members[2].lastHeard(), keccak256("issue 1"));
        assertEq(members[1].heard(), 2);
    }
}
